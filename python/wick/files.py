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


class SavedStorage:
    """The memory of a tensor that is being read: functions as `map_location` get it on the CPU, and give it
    back where the tensor goes."""

    def __init__(self, device="cpu"):
        self.device = _C.device(device)

    def __repr__(self):
        return f"SavedStorage(device={str(self.device)!r})"

    @property
    def is_cuda(self):
        return self.device.type == "cuda"

    def cpu(self):
        return SavedStorage()

    def cuda(self, device=None, non_blocking=False):
        return SavedStorage("cuda" if device is None else device)

    def to(self, device, non_blocking=False):
        return SavedStorage(device)


def map_of(map_location):
    """`map_location` as _C takes it."""
    if not callable(map_location):
        return map_location

    def device(name):
        found = map_location(SavedStorage(), name)
        if found is None or isinstance(found, (str, _C.device)):
            return found
        if isinstance(found, SavedStorage):
            return found.device
        raise TypeError(
            "map_location: expected the function to give the storage, a device or None, got "
            + type(found).__name__
        )

    return device


def load(file, map_location=None, weights_only=True):
    """Reads what torch.save wrote: numbers, strings, tensors, tuples, lists and dicts of them.

    Each tensor goes to the device that it was saved on, or to the CPU when this machine has no such device.
    `map_location` says otherwise: a device for all; a dict from names of devices in the file ("cuda:1") to
    devices; or a function of a SavedStorage and such a name that gives the storage moved, as
    `lambda storage, name: storage.cuda(0)`, a device, or None for the same as without a function.

    `weights_only` is for programs that PyTorch runs too: code of a file is never run, True or False."""
    source = bytes_in(file) if hasattr(file, "read") else path_of(file)
    return _C._load_value(source, map_of(map_location))


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


def load_tensors(file, map_location=None):
    """The tensors of a file by name; the format is told by the first bytes. `map_location` is as for load; only
    torch.save's files name devices, the tensors of others count as saved on the CPU."""
    return _with_path(file, lambda path: _C._load_tensors(path, map_of(map_location)))


def save_tensors(tensors, path):
    """Writes tensors by name; the name's end tells the format: .safetensors, .npz, .npy, .pt."""
    _C._save_tensors(dict(tensors), path_of(path))
