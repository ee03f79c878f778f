"""One captured graph as a program: wick.compiler.export."""

import inspect
import keyword
import math

from wick import _C, _compiled


class ExportError(RuntimeError):
    """A function that is more than one graph, with the reason and its place."""

    def __init__(self, reason, file="", line=0):
        place = f"{file}:{line}: " if file else ""
        super().__init__(f"export: {place}{reason}")
        self.reason, self.file, self.line = reason, file, line


def export(function, /, *args, **kwargs):
    """Calls the function or module once, and gives its graph as a module of a program.

    The tensors among the arguments are the program's arguments, of the same dtypes and sizes; all others
    are constants of it. Parameters, buffers and other tensors are attributes; those of PyTorch are copied.
    Raises ExportError with the reason and its place where the call is not one graph.
    """
    original = _compiled.original_of(function)
    call = _Call(original, args, kwargs)
    return _Program(original, call).made


class _Call:
    """One call, as a graph: its tensors, and the results that it gave."""

    def __init__(self, function, args, kwargs):
        self.arguments = _named_tensors(function, args, kwargs)
        self.graph = None
        self.examples, self.outputs = [], []
        self._entries = 0
        region = _C._make_region(False, self._backend, self._observe, False)
        self.result = region.call(function, args, kwargs)
        if self.graph is None:
            raise ExportError("the call computes nothing with tensors")

    def _observe(self, code, entry):
        self._entries += 1
        if entry["plain"] or not (entry["complete"] or entry["raises"]):
            raise ExportError(entry["reason"], entry["file"], entry["line"])
        if entry["changes"]:
            raise ExportError("the call changes objects", code.co_filename, code.co_firstlineno)
        if self._entries > 1:
            raise ExportError("the call is more than one graph", code.co_filename, code.co_firstlineno)

    def _backend(self, graph, examples):
        self.graph = getattr(graph, "script", graph)
        self.examples = examples

        def run(*tensors):
            self.outputs = graph(*tensors)
            return self.outputs

        return run


def _named_tensors(function, args, kwargs):
    """The tensors among the arguments, by the names that the program's arguments get."""
    called = function.forward if _compiled.is_module(function) else function
    try:
        bound = inspect.signature(called).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        bound = {f"arg_{i}": each for i, each in enumerate(args)} | kwargs
    found = {}

    def add(name, value):
        if _is_tensor(value):
            if any(value is other for other in found.values()):
                raise ExportError("two arguments are one tensor")
            while not name.isidentifier() or keyword.iskeyword(name) or name in found or name == "self":
                name = "arg_" + "".join(c if c.isalnum() else "_" for c in name)
            found[name] = value
        elif isinstance(value, (list, tuple)):
            for i, each in enumerate(value):
                add(f"{name}_{i}", each)
        elif isinstance(value, dict):
            for key, each in value.items():
                add(f"{name}_{key}", each)

    for name, value in bound.items():
        add(name, value)
    return found


def _is_tensor(value):
    return isinstance(value, _C.Tensor) or _C._is_torch_tensor(value)


class _Program:
    """The program of a call."""

    def __init__(self, function, call):
        self._call = call
        self._parts = {}  # modules by name, tensors as (kind, tensor)
        self._places = {}  # where a tensor of the module lies, by its identity
        if _compiled.is_module(function):
            for kind, tensors in (
                ("parameter", function.named_parameters()),
                ("buffer", function.named_buffers()),
            ):
                for path, tensor in tensors:
                    self._places[id(tensor)] = kind, path.split("."), tensor
        for tensor in call.arguments.values():
            if id(tensor) in self._places:
                raise ExportError("an argument is a parameter of the module")
        self._values = {id(t): name for name, t in call.arguments.items()}
        inputs = [self._value(tensor) for tensor in call.examples]
        for i, tensor in enumerate(call.outputs):
            self._values[id(tensor)] = f"results[{i}]"
        result = self._text(call.result)
        lines = [f"def forward({', '.join(['self', *(n + ': Tensor' for n in call.arguments)])}):"]
        lines += self._checks()
        lines += [f"    results = captured({', '.join(inputs)})", f"    return {result}"]
        self.made = self._module(function, "\n".join(lines) + "\n")

    def _value(self, tensor):
        """The expression for a tensor, which becomes an attribute unless it is known."""
        if id(tensor) not in self._values:
            kind, path, _ = self._places.get(id(tensor), ("buffer", None, tensor))
            if path is None:
                path = [f"constant_{len(self._parts)}"]
            at = self._parts
            for name in path[:-1]:
                at = at.setdefault(name, {})
            at[path[-1]] = kind, tensor
            self._places[id(tensor)] = kind, path, tensor
            text = "self"
            for name in path:
                text = f"{text}.{name}" if name.isidentifier() else f"getattr({text}, {name!r})"
            self._values[id(tensor)] = text
        return self._values[id(tensor)]

    def _text(self, value):
        """The expression for a result."""
        if _is_tensor(value):
            return self._value(value)
        if type(value) is tuple:
            parts = [self._text(each) for each in value]
            return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
        if type(value) is list:
            return f"[{', '.join(map(self._text, value))}]"
        if type(value) is dict:
            return "{" + ", ".join(f"{self._text(k)}: {self._text(v)}" for k, v in value.items()) + "}"
        if value is None or type(value) in (bool, int, str):
            return repr(value)
        if type(value) is float:
            return repr(value) if math.isfinite(value) else f'float("{value}")'
        raise ExportError(f"the result holds an object of the class {type(value).__name__}")

    def _checks(self):
        """The lines that refuse tensors of other sizes and dtypes."""
        lines = []
        for name, tensor in self._call.arguments.items():
            sizes = list(tensor.shape)
            message = f"{name}: this program was captured for a tensor of {tensor.dtype} {sizes}"
            differs = f"{name}.size() != {sizes}" if sizes else f"{name}.dim() != 0"
            lines += [
                f"    if {name}.dtype != {tensor.dtype} or {differs}:",
                f"        raise RuntimeError({message!r})",
            ]
        return lines

    def _module(self, function, text):
        from wick import jit, torch

        def source(name):
            lookup = jit._lookup({"captured": self._call.graph, "torch": torch})
            return (text, "<exported>", 1, lookup) if name == "forward" else None

        kind = type(function) if _compiled.is_module(function) else function
        if not hasattr(kind, "__qualname__"):
            kind = type(kind)
        made = self._nested(jit._qualified(kind).replace("<lambda>", "_lambda"), self._parts, source)
        made._c.compile(["forward"])
        _C._inline_calls(made._c.method("forward"))
        return made

    def _nested(self, name, parts, source):
        from wick import jit

        fields = [("attribute", "training", "bool", False)]
        for part, held in parts.items():
            if isinstance(held, dict):
                inner = self._nested(f"{name}_{part}", held, lambda method: None)
                fields.append(("module", part, None, inner._c))
            else:
                kind, tensor = held
                fields.append((kind, part, "Tensor", _own(tensor)))
        return jit.ScriptModule(_C._make_module(name, fields, source, jit._lookup({}), False))


def _own(tensor):
    """The tensor itself if it is Wick's, a copy of PyTorch's."""
    if isinstance(tensor, _C.Tensor):
        return tensor
    import torch as pytorch
    from torch.utils import dlpack
    from wick import nn, torch

    plain = tensor.detach()
    is_bool = plain.dtype == pytorch.bool
    copied = torch.from_dlpack(dlpack.to_dlpack(plain.view(pytorch.uint8) if is_bool else plain))
    copied = copied.to(torch.bool) if is_bool else copied.clone()
    if isinstance(tensor, pytorch.nn.Parameter):
        return nn.Parameter(copied, tensor.requires_grad)
    return copied
