"""Programs of torch.export: the files that PyTorch 2 writes in place of TorchScript's archives (docs/exported.md)."""

__all__ = ["load"]


def load(file, map_location=None, *, extra_files=None):
    """Reads a file of torch.export.save, from a path or a file that is open, as a ScriptModule.

    forward takes arguments and gives results in the trees of the program. `extra_files` is a dict whose keys name records;
    the values become their text, as str. Tensors go where `map_location` says, as files.load tells."""
    from wick import jit

    extra = {name: "" for name in extra_files or {}}
    module = jit.load(file, map_location, extra)
    for name, text in extra.items():
        extra_files[name] = text.decode() if isinstance(text, bytes) else text
    return module
