"""Files of tensors and values: torch.save's, safetensors, .npz and .npy."""

import os
import tempfile

from wick import _C


def path_of(file):
    """The name of a file as str. TypeError for what is no path, ValueError for one that no file has."""
    path = os.fsdecode(os.fspath(file))
    if "\0" in path:
        raise ValueError("embedded null byte")
    return path


def bytes_in(file):
    """What an open file reads."""
    contents = file.read()
    if not isinstance(contents, (bytes, bytearray, memoryview)):
        raise TypeError(
            f"expected a file that reads bytes, got {type(contents).__name__} from its read()"
        )
    return bytes(contents)


def _with_path(file, use):
    """Calls `use` with a path that holds what an open file reads."""
    if not hasattr(file, "read"):
        return use(path_of(file))
    with tempfile.NamedTemporaryFile() as copy:
        copy.write(bytes_in(file))
        copy.flush()
        return use(copy.name)


def load(file, map_location=None, weights_only=True):
    """Reads what torch.save wrote: numbers, strings, tensors, tuples, lists and dicts of them.

    `weights_only` is for programs that PyTorch runs too: code of a file is never run, True or False.
    """
    if map_location is not None and not callable(map_location):
        if str(_C.device(map_location)).split(":")[0] != "cpu":
            raise RuntimeError(f"load: only the CPU is known, not {map_location}")
    return _C._load_value(bytes_in(file) if hasattr(file, "read") else path_of(file))


def save(value, file):
    """Writes a file that torch.load reads."""
    value = _plain(value)
    if hasattr(file, "write"):
        file.write(_C._value_to_bytes(value))
    else:
        _C._save_value(value, path_of(file))


def _plain(value):
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return value


def load_tensors(file):
    """The tensors of a file by name; the format is told by the first bytes."""
    return _with_path(file, _C._load_tensors)


def save_tensors(tensors, path):
    """Writes tensors by name; the name's end tells the format: .safetensors, .npz, .npy, .pt."""
    _C._save_tensors(dict(tensors), path_of(path))
