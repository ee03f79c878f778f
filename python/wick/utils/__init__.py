"""torch.utils: checkpoints and DLPack."""

from wick.utils import checkpoint, dlpack
