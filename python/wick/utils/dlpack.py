"""Tensors of other libraries."""

from wick._C import from_dlpack, to_dlpack
