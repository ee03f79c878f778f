"""torch.jit: functions, classes and modules of Python compiled as programs."""

import functools
import inspect
import sys as _sys
import textwrap
import types

from wick import _C
from wick._C import Graph, ScriptFunction, ScriptObject

_PREFIX = "__torch__."


# ---- marks ----


def export(function):
    """A method that is compiled although no other calls it."""
    function._wick_mark = "export"
    return function


def unused(function):
    """A function or method that raises when a program calls it."""
    function._wick_mark = "unused"
    return function


def ignore(function=None, drop=False):
    """A function or method that stays Python's when a program calls it."""
    if function is None or isinstance(function, bool):
        return functools.partial(ignore, drop=bool(function) or drop)
    function._wick_mark = "unused" if drop else "ignore"
    return function


def is_scripting():
    return False


def annotate(the_type, value):
    return value


class Attribute:
    """A value with the type that it has in programs."""

    def __init__(self, value, type):
        self.value = value
        self.type = type


# ---- sources and names ----


def _source(function):
    """The text of a function or class with the file and line where it stands."""
    function = inspect.unwrap(function)
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError) as error:
        raise _C.CompileError(
            f"{getattr(function, '__qualname__', function)}: no source is known ({error})"
        ) from None
    file = inspect.getsourcefile(function) or "<unknown>"
    return textwrap.dedent("".join(lines)), file, first


def _names_of(function):
    """Looks names up where Python would: the closure, then the globals."""
    function = inspect.unwrap(function)
    names = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            names[name] = cell.cell_contents
        except ValueError:
            pass  # not bound yet
    return _lookup(names, function.__globals__)


def _lookup(*scopes):
    def lookup(name):
        for scope in scopes:
            if name in scope:
                return (scope[name],)
        return None

    return lookup


def _names_of_class(kind, extra=None):
    module = _sys.modules.get(kind.__module__)
    return _lookup(extra or {}, {kind.__name__: kind}, vars(module) if module else {})


def _qualified(thing):
    module = thing.__module__ or "__main__"
    parts = [p for p in f"{module}.{thing.__qualname__}".split(".") if p != "<locals>"]
    return _PREFIX + ".".join(p if p.isidentifier() else "_" for p in parts)


def _type_text(annotation):
    """An annotation as the language writes it."""
    if isinstance(annotation, str):
        return annotation
    if annotation is None or annotation is type(None):
        return "None"
    if annotation is _C.Tensor:
        return "Tensor"
    if isinstance(annotation, type) and not getattr(annotation, "__args__", None):
        return annotation.__name__
    arguments = getattr(annotation, "__args__", ())
    origin = getattr(annotation, "__origin__", None)
    names = {list: "List", dict: "Dict", tuple: "Tuple"}
    if origin in names:
        inner = ", ".join(_type_text(a) for a in arguments) or "()"
        return f"{names[origin]}[{inner}]"
    if isinstance(annotation, types.UnionType) or "Union" in repr(origin):
        rest = [a for a in arguments if a is not type(None)]
        if len(rest) == 1 and len(rest) < len(arguments):
            return f"Optional[{_type_text(rest[0])}]"
        return "Union[" + ", ".join(_type_text(a) for a in arguments) + "]"
    return repr(annotation).replace("typing.", "")


def _result_text(function):
    result = inspect.signature(function).return_annotation
    return "Tensor" if result is inspect.Signature.empty else _type_text(result)


# ---- functions and classes ----

# Kept by the function object itself, so that both end together.
_compiled_name = "_wick_compiled"
_classes = {}  # class to its name in programs


def _function_for(function):
    """Asked by the compiler: what a function of Python stands for."""
    if getattr(function, "_wick_mark", None) == "ignore":
        return function, _result_text(function)
    if isinstance(function, functools.partial) or not isinstance(function, types.FunctionType):
        return None
    return _script_function(function, compile=False)


def _script_function(function, compile=True):
    compiled = function.__dict__.get(_compiled_name)
    if compiled is None:
        text, file, line = _source(function)
        compiled = _C._declare_function(_qualified(function), text, file, line, _names_of(function))
        function.__dict__[_compiled_name] = compiled
    if compile:
        try:
            compiled._compile()
        except BaseException:
            function.__dict__.pop(_compiled_name, None)
            raise
    return compiled


def _class_for(kind):
    """Asked by the compiler: the name of a class of Python in programs, or None."""
    if kind in _classes:
        return _classes[kind]
    if kind.__module__ in ("builtins", "typing") or issubclass(kind, BaseException):
        return None
    if issubclass(kind, _nn_module()):
        return None
    return _declare_class(kind)


def _nn_module():
    from wick import nn

    return nn.Module


def _declare_class(kind):
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        text, file, line = _named_tuple_text(kind), "<namedtuple>", 1
    else:
        text, file, line = _source(kind)
    name = _qualified(kind)
    try:
        _classes[kind] = name
        made = _C._declare_class(name, text, file, line, _names_of_class(kind))
    except BaseException:
        del _classes[kind]
        raise
    _classes[kind] = made
    return made


def _named_tuple_text(kind):
    lines = [f"class {kind.__name__}(NamedTuple):"]
    annotations = getattr(kind, "__annotations__", {})
    for field in kind._fields:
        text = _type_text(annotations.get(field, _C.Tensor))
        default = kind._field_defaults.get(field)
        lines.append(f"    {field}: {text}" + (f" = {default!r}" if default is not None else ""))
    return "\n".join(lines) + "\n"


def script(obj, *unused_arguments, **unused_keywords):
    """Compiles a function, class or module of Python."""
    if isinstance(obj, (ScriptFunction, ScriptModule)):
        return obj
    if isinstance(obj, _nn_module()):
        return _script_module(obj)
    if inspect.isclass(obj):
        name = _class_for(obj)
        if name is None:
            raise TypeError(f"{obj} cannot be compiled; pass an instance of a module")
        _C._compile_class(name)
        return obj
    if isinstance(obj, types.FunctionType):
        return _script_function(obj)
    raise TypeError(f"script: a function, class or module is expected, not {type(obj).__name__}")


class CompilationUnit:
    """Functions of a text."""

    def __init__(self, source="", file="<string>"):
        self._unit = _C._Unit()
        if source:
            self.define(source, file)

    def define(self, source, file="<string>"):
        if not isinstance(source, str):
            raise TypeError(f"define: expected the text of a program, got {type(source).__name__}")
        self._unit.define(source, file)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        found = self._unit.find(name)
        if found is None:
            raise AttributeError(f"the unit has no function '{name}'")
        return found

    def get_functions(self):
        return [self._unit.find(name) for name in self._unit.names()]


# ---- modules ----


def _script_module(module, memo=None):
    memo = {} if memo is None else memo
    made = _declare_module(module, memo)
    scripted = list(memo.values())
    for python_module, each in scripted:
        names = _exported(python_module)
        if python_module is module and _is_method(module, "forward"):
            names.append("forward")
        each._c.compile(names)
    for _, each in scripted:
        each._c.forget_python()
    return made


def _exported(module):
    return [name for name in dir(type(module)) if _mark(module, name) == "export"]


def _is_method(module, name):
    method = inspect.getattr_static(type(module), name, None)
    return isinstance(method, types.FunctionType) and _mark(module, name) != "ignore"


def _mark(module, name):
    return getattr(inspect.getattr_static(type(module), name, None), "_wick_mark", None)


_OWN = {"_parameters", "_buffers", "_modules", "_non_persistent", "training"}


def _declare_module(module, memo):
    from wick import nn

    if id(module) in memo:
        return memo[id(module)][1]
    kind = type(module)
    constants = set(getattr(module, "__constants__", ()))
    annotations = {}
    for base in reversed(kind.__mro__):
        annotations.update(base.__dict__.get("__annotations__", {}))
    fields = [("attribute", "training", "bool", module.training)]
    for name, value in module._parameters.items():
        fields.append(("parameter", name, None, value))
    for name, value in module._buffers.items():
        fields.append(("buffer", name, None if value is None else "Tensor", value))
    for name, child in module._modules.items():
        if child is None:
            fields.append(("attribute", name, "None", None))
        else:
            fields.append(("module", name, None, _declare_module(child, memo)._c))
    for name, value in vars(module).items():
        if name in _OWN or name.startswith("_wick"):
            continue
        fields += _declare_attribute(name, value, annotations.get(name), name in constants)

    def method_source(name):
        method = inspect.getattr_static(kind, name, None)
        if not isinstance(method, types.FunctionType):
            return None
        if getattr(method, "_wick_mark", None) == "ignore":
            return types.MethodType(method, module), _result_text(method)
        text, file, line = _source(method)
        return text, file, line, _names_of(method)

    container = isinstance(module, (nn.Sequential, nn.ModuleList, nn.ModuleDict))
    made = ScriptModule(
        _C._make_module(_qualified(kind), fields, method_source, _names_of_class(kind), container)
    )
    memo[id(module)] = (module, made)
    return made


def _declare_attribute(name, value, annotation, constant):
    if isinstance(value, Attribute):
        return [("attribute", name, _type_text(value.type), value.value)]
    text = None if annotation is None else _type_text(annotation)
    if text and text.startswith("Final"):
        inner = text[len("Final["):-1] if "[" in text else None
        return [("constant", name, inner, value)]
    if isinstance(value, ScriptModule):
        return [("module", name, None, value._c)]
    if callable(value) and not isinstance(value, (_C.Tensor, ScriptObject)):
        return [("value", name, None, value)]
    if constant:
        return [("constant", name, None, value)]
    if text is None and value is None:
        return [("attribute", name, "None", None)]
    try:
        _C._is_value(value)
    except TypeError:
        return []  # a program that asks for it gets an error
    return [("attribute", name, text, value)]


class ScriptModule:
    """A module of a program."""

    def __init__(self, c):
        if not isinstance(c, _C._Module):
            raise TypeError(
                f"ScriptModule: modules come of script, trace and load, not of {type(c).__name__}"
            )
        self.__dict__["_c"] = c

    def __call__(self, *args, **kwargs):
        return self._c.call("", *args, **kwargs)

    def __getattr__(self, name):
        c = self.__dict__.get("_c")
        if c is None:
            raise AttributeError(f"'{name}' of a module that was never initialized")
        if c.has(name):
            return c.get(name)
        if name in c.method_names():
            return functools.partial(c.call, name)
        raise AttributeError(f"'{c.class_name()}' has no attribute '{name}'")

    def __setattr__(self, name, value):
        self._c.set(name, value)

    def __eq__(self, other):
        return isinstance(other, ScriptModule) and self._c.same(other._c)

    def __hash__(self):
        return object.__hash__(self)

    def __dir__(self):
        return sorted(set(super().__dir__()) | set(self._c.method_names()))

    def __repr__(self):
        lines = [f"ScriptModule({self._c.class_name()}"]
        for name, child in self.named_children():
            lines.append(f"  ({name}): " + repr(child).replace("\n", "\n  "))
        return "\n".join(lines) + ("\n)" if len(lines) > 1 else ")")

    @property
    def graph(self):
        return self._c.method("forward").graph

    @property
    def code(self):
        """The source of the module's program, as an archive holds it."""
        return "\n".join(text for _, text in self._c.code())

    def _repr_svg_(self):
        return _svg(self._c.dot("forward"))

    def parameters(self, recurse=True):
        return (p for _, p in self._c.parameters(recurse))

    def named_parameters(self, recurse=True):
        return iter(self._c.parameters(recurse))

    def buffers(self, recurse=True):
        return (b for _, b in self._c.buffers(recurse))

    def named_buffers(self, recurse=True):
        return iter(self._c.buffers(recurse))

    def children(self):
        return (m for _, m in self._c.children())

    def named_children(self):
        return iter(self._c.children())

    def modules(self):
        return (m for _, m in self._c.modules())

    def named_modules(self):
        return iter(self._c.modules())

    def state_dict(self):
        """Parameters and buffers by name: tensors without gradients on the same memory."""
        return {name: tensor.detach() for name, tensor in self._c.state_dict().items()}

    def load_state_dict(self, state, strict=True):
        return self._c.load_state_dict(dict(state), strict)

    def train(self, mode=True):
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self._c.train(mode)
        return self

    def eval(self):
        return self.train(False)

    def to(self, *args):
        """Moves parameters, buffers and other attributes to a device, and converts to a dtype."""
        for each in args:
            if isinstance(each, (str, int, _C.device)):
                self._c.to_device(each)
            elif isinstance(each, _C.dtype):
                self._c.to(each)
            else:
                raise TypeError(f"to: expected a device or a dtype, got {type(each).__name__}")
        return self

    def zero_grad(self):
        for p in self.parameters():
            p.grad = None

    def copy(self):
        return ScriptModule(self._c.clone())

    __copy__ = copy

    def __deepcopy__(self, memo):
        return self.copy()

    def save(self, file, _extra_files=None):
        save(self, file, _extra_files)


RecursiveScriptModule = ScriptModule


def _wrap(c):
    """Asked by the engine: the Python object of a module."""
    return ScriptModule(c)


def _check_module(what, module, expected="a ScriptModule"):
    if not isinstance(module, ScriptModule):
        raise TypeError(f"{what}: expected {expected}, got {type(module).__name__}")


def save(module, file, _extra_files=None):
    """Writes an archive that torch.jit.load reads, to a path or a file that is open."""
    from wick import files

    extra = dict(_extra_files or {})
    if isinstance(module, ScriptFunction):
        module = ScriptModule(_C._module_of_function(module))
    _check_module("save", module, "a ScriptModule or ScriptFunction")
    if hasattr(file, "write"):
        file.write(module._c.save_to_bytes(extra))
    else:
        module._c.save(files.path_of(file), extra)


def load(file, map_location=None, _extra_files=None):
    """Reads an archive of torch.jit.save, from a path or a file that is open.

    Tensors, and devices that the code names, go where `map_location` says, as files.load tells."""
    from wick import files

    source = files.bytes_in(file) if hasattr(file, "read") else files.path_of(file)
    extra = {}
    made = ScriptModule(_C._load_module(source, files.map_of(map_location), extra))
    for name in _extra_files or {}:
        _extra_files[name] = extra.get(name, b"")
    return made


def freeze(module, preserved_attrs=None, optimize_numerics=True):
    """A copy with the attributes that nobody writes as constants."""
    _check_module("freeze", module)
    methods = ["forward"] + [n for n in preserved_attrs or () if n in module._c.method_names()]
    return ScriptModule(module._c.freeze(methods, optimize_numerics))


def optimize_for_inference(module):
    """The module's forward prepared for inference: later changes of the module are not seen."""
    _check_module("optimize_for_inference", module)
    return _C._optimize_for_inference(module._c, "forward")


# ---- pictures ----


def _svg(dot):
    import shutil
    import subprocess

    if shutil.which("dot") is None:
        raise RuntimeError("pictures need Graphviz: no program 'dot' is installed")
    return subprocess.run(
        ["dot", "-Tsvg"], input=dot, capture_output=True, text=True, check=True
    ).stdout


Graph._repr_svg_ = lambda self: _svg(self.dot())


def _script_object_attribute(self, name, _known=ScriptObject.__getattr__):
    if name.startswith("__"):
        raise AttributeError(name)
    if name in self._methods():
        return functools.partial(self._call, name)
    return _known(self, name)


ScriptObject.__getattr__ = _script_object_attribute
ScriptFunction.save = save
ScriptFunction.code = property(lambda self: ScriptModule(_C._module_of_function(self)).code)


# ---- fork ----


class Future:
    """The result of a call that runs on another thread."""

    def __init__(self, run):
        import threading

        self._result = self._error = None
        self._thread = threading.Thread(target=self._work, args=(run,), daemon=True)
        self._thread.start()

    def _work(self, run):
        try:
            self._result = run()
        except BaseException as error:
            self._error = error

    def done(self):
        return not self._thread.is_alive()

    def wait(self):
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._result

    value = wait


def fork(function, *args, **kwargs):
    """Calls a function on another thread. What is compiled runs beside Python."""
    return Future(lambda: function(*args, **kwargs))


def wait(future):
    return future.wait()


from wick.jit._check import TracingCheckError  # noqa: E402
from wick.jit._numbers import TracerWarning  # noqa: E402
from wick.jit._trace import is_tracing, script_if_tracing, trace, trace_module  # noqa: E402
