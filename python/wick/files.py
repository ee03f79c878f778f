"""Files of tensors and values: torch.save's, safetensors, .npz and .npy."""

import os
import tempfile

from wick import _C


def _with_path(file, use):
    """Calls `use` with a path that holds what an open file reads."""
    if not hasattr(file, "read"):
        return use(os.fspath(file))
    with tempfile.NamedTemporaryFile() as copy:
        copy.write(file.read())
        copy.flush()
        return use(copy.name)


def load(file, map_location=None):
    """Reads what torch.save wrote: numbers, strings, tensors, tuples, lists and dicts of them."""
    if map_location is not None and not callable(map_location):
        if str(_C.device(map_location)).split(":")[0] != "cpu":
            raise RuntimeError(f"load: only the CPU is known, not {map_location}")
    return _with_path(file, _C._load_value)


def save(value, file):
    """Writes a file that torch.load reads."""
    value = _plain(value)
    if hasattr(file, "write"):
        file.write(_C._value_to_bytes(value))
    else:
        _C._save_value(value, os.fspath(file))


def _plain(value):
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return value


def load_tensors(file):
    """The tensors of a file by name; the format is told by the first bytes."""
    return _with_path(file, _C._load_tensors)


def save_tensors(tensors, path):
    """Writes tensors by name; the name's end tells the format: .safetensors, .npz, .npy, .pt."""
    _C._save_tensors(dict(tensors), os.fspath(path))
