"""Programs of torch.export: the files that PyTorch 2 writes in place of TorchScript's archives (docs/exported.md)."""

from wick import _C

__all__ = ["load", "save"]


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


def save(module, file, args, *, dynamic_shapes=None, method="forward"):
    """Writes a file that torch.export.load of PyTorch 2.8 and later reads (docs/migrating.md).

    `module` is a ScriptModule or ScriptFunction, or what wick.compiler.export gives; the program is the method in evaluation mode for
    arguments like `args`, a tuple. `dynamic_shapes` leaves sizes of tensors open: {"x": {0: ("batch", 2, 64)}} by argument and
    dimension; dimensions of one name are equal. Raises RuntimeError with the line of the program for what exported programs cannot
    express."""
    from wick import files, jit

    if isinstance(module, jit.ScriptFunction):
        module = jit.ScriptModule(_C._module_of_function(module))
    jit._check_module("export.save", module, "a ScriptModule or ScriptFunction")
    if not isinstance(args, (tuple, list)):
        raise TypeError(f"export.save: args is a tuple of arguments, got {type(args).__name__}")
    names = module._c.argument_names(method)
    places = _places(names, args, dynamic_shapes or {})
    sizes = sorted({(name, least, most) for _, _, name, least, most in places})
    if len({name for name, _, _ in sizes}) != len(sizes):
        raise ValueError("export.save: a size has one range, and one was given several")
    examples = []
    for values in module._c.example_sizes(sizes):
        of_name = {name: value for (name, _, _), value in zip(sizes, values)}
        made = list(args)
        for argument, dim, name, _, _ in places:
            made[argument] = _resized(made[argument], dim, of_name[name])
        examples.append((values, tuple(made)))
    module._c.save_exported(files.path_of(file), examples, sizes, method)


def _places(names, args, dynamic_shapes):
    """The open dimensions: argument, dimension, name, range."""
    places = []
    for name, dims in dynamic_shapes.items():
        if name not in names or names.index(name) >= len(args):
            raise ValueError(f"export.save: dynamic_shapes names {name!r}, which is none of the arguments {', '.join(names)}")
        argument = names.index(name)
        for dim, size in dims.items():
            if not (isinstance(size, tuple) and len(size) == 3 and 0 <= size[1] <= size[2]):
                raise ValueError(f"export.save: expected (name, least, most) for a size, got {size!r}")
            places.append((argument, dim, *size))
    return places


def _resized(tensor, dim, size):
    """The tensor with its elements repeated along the dimension, so that indices among them stay valid."""
    from wick import torch

    if not isinstance(tensor, torch.Tensor) or tensor.size(dim) == 0:
        raise ValueError("export.save: open sizes are those of tensors with elements")
    index = torch.arange(size, device=tensor.device) % tensor.size(dim)
    return tensor.detach().index_select(dim, index)
