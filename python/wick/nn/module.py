"""Module and Parameter."""

import collections
import collections.abc
import weakref

from wick import _C
from wick._C import Tensor


class Parameter(Tensor):
    """A tensor that a module learns."""

    def __new__(cls, data=None, requires_grad=True):
        if data is None:
            data = Tensor(0)
        return Tensor._make_subclass(cls, data, requires_grad)

    def __repr__(self):
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, protocol):
        return _rebuild_parameter, (self.detach(), self.requires_grad)


def _rebuild_parameter(data, requires_grad):
    return Parameter(data, requires_grad)


_LoadResult = collections.namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])


def _wrong_part(expected, name, found):
    return TypeError(f"expected a {expected} as '{name}', got {type(found).__name__}")


class _Handle:
    """Takes a hook back."""

    def __init__(self, hooks):
        self._hooks = weakref.ref(hooks)
        self._id = max(hooks, default=-1) + 1

    def remove(self):
        hooks = self._hooks()
        if hooks is not None:
            hooks.pop(self._id, None)


class _Hooks(collections.OrderedDict):
    def register(self, hook):
        handle = _Handle(self)
        self[handle._id] = hook
        return handle


# A trace sets it, to see which modules are called: gets the module and its arguments, and calls
# forward.
_observe_call = None


class Module:
    """Parameters, buffers and modules under names, and a forward."""

    def __init__(self):
        self.__dict__.update(
            training=True,
            _parameters={},
            _buffers={},
            _modules={},
            _non_persistent=set(),
            _wick_hooks=_Hooks(),
            _wick_pre_hooks=_Hooks(),
        )

    def forward(self, *args, **kwargs):
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def __call__(self, *args, **kwargs):
        for hook in tuple(self._wick_pre_hooks.values()):
            changed = hook(self, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        if _observe_call is None:
            result = self.forward(*args, **kwargs)
        else:
            result = _observe_call(self, args, kwargs)
        for hook in tuple(self._wick_hooks.values()):
            changed = hook(self, args, result)
            if changed is not None:
                result = changed
        return result

    def register_forward_pre_hook(self, hook):
        return self._wick_pre_hooks.register(hook)

    def register_forward_hook(self, hook):
        return self._wick_hooks.register(hook)

    # ---- names ----

    def __setattr__(self, name, value):
        places = [self.__dict__.get(p) for p in ("_parameters", "_buffers", "_modules")]
        if places[0] is None:
            if isinstance(value, (Parameter, Module)):
                raise AttributeError(
                    f"cannot assign {name} before Module.__init__() call"
                )
            object.__setattr__(self, name, value)
            return
        if isinstance(value, Parameter):
            place = places[0]
        elif isinstance(value, Module):
            place = places[2]
        else:
            for place in places:
                if name in place:
                    break
            else:
                object.__setattr__(self, name, value)
                return
            if value is not None and (place is not places[1] or not isinstance(value, Tensor)):
                raise TypeError(
                    f"cannot assign a {type(value).__name__} as '{name}', which is a parameter, "
                    "buffer or module"
                )
        for other in (*places, self.__dict__):
            if other is not place:
                other.pop(name, None)
        place[name] = value

    def __getattr__(self, name):
        for place in ("_parameters", "_buffers", "_modules"):
            found = self.__dict__.get(place)
            if found is not None and name in found:
                return found[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name):
        for place in (self._parameters, self._buffers, self._modules):
            if name in place:
                del place[name]
                return
        object.__delattr__(self, name)

    def __dir__(self):
        names = set(super().__dir__())
        return sorted(names | set(self._parameters) | set(self._buffers) | set(self._modules))

    def register_parameter(self, name, parameter):
        self._check_name(name)
        if parameter is not None and not isinstance(parameter, Parameter):
            raise _wrong_part("Parameter", name, parameter)
        self._parameters[name] = parameter

    def register_buffer(self, name, tensor, persistent=True):
        self._check_name(name)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise _wrong_part("Tensor", name, tensor)
        self._buffers[name] = tensor
        if not persistent:
            self._non_persistent.add(name)

    def add_module(self, name, module):
        self._check_name(name)
        if module is not None and not isinstance(module, Module):
            raise _wrong_part("Module", name, module)
        self._modules[name] = module

    register_module = add_module

    def _check_name(self, name):
        if not isinstance(name, str) or not name or "." in name:
            raise KeyError(f"{name!r} is no name for a part of a module")
        if hasattr(self, name) and not any(
            name in p for p in (self._parameters, self._buffers, self._modules)
        ):
            raise KeyError(f"attribute '{name}' already exists")

    # ---- walking ----

    def named_modules(self, memo=None, prefix=""):
        memo = set() if memo is None else memo
        if self in memo:
            return
        memo.add(self)
        yield prefix, self
        for name, child in self._modules.items():
            if child is not None:
                yield from child.named_modules(memo, prefix + ("." if prefix else "") + name)

    def modules(self):
        return (module for _, module in self.named_modules())

    def named_children(self):
        return ((n, m) for n, m in self._modules.items() if m is not None)

    def children(self):
        return (module for _, module in self.named_children())

    def _named(self, place, prefix, recurse):
        seen = set()
        for path, module in self.named_modules(prefix=prefix) if recurse else [(prefix, self)]:
            for name, value in module.__dict__[place].items():
                if value is not None and id(value) not in seen:
                    seen.add(id(value))
                    yield path + ("." if path else "") + name, value

    def named_parameters(self, prefix="", recurse=True):
        return self._named("_parameters", prefix, recurse)

    def parameters(self, recurse=True):
        return (p for _, p in self.named_parameters(recurse=recurse))

    def named_buffers(self, prefix="", recurse=True):
        return self._named("_buffers", prefix, recurse)

    def buffers(self, recurse=True):
        return (b for _, b in self.named_buffers(recurse=recurse))

    def get_submodule(self, path):
        module = self
        for name in path.split(".") if path else ():
            module = module._modules.get(name)
            if module is None:
                raise AttributeError(f"no submodule '{path}'")
        return module

    # ---- all of it ----

    def apply(self, function):
        for child in self.children():
            child.apply(function)
        function(self)
        return self

    def train(self, mode=True):
        for module in self.modules():
            module.training = bool(mode)
        return self

    def eval(self):
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True):
        for p in self.parameters():
            if p.grad is not None:
                if set_to_none:
                    p.grad = None
                else:
                    p.grad.detach_().zero_()

    def _convert(self, convert):
        for module in self.modules():
            for p in module._parameters.values():
                if p is not None:
                    p.data = convert(p.data)
                    if p.grad is not None:
                        p.grad = convert(p.grad)
            for name, b in module._buffers.items():
                if b is not None:
                    module._buffers[name] = convert(b)
        return self

    def to(self, *args, **kwargs):
        kind = next((a for a in (*args, *kwargs.values()) if isinstance(a, _C.dtype)), None)
        if kind is not None and not (kind.is_floating_point or kind.is_complex):
            raise TypeError(f"to: a module's dtype is a floating-point one, not {kind}")

        def convert(t):
            if kind is not None and not (t.dtype.is_floating_point or t.dtype.is_complex):
                rest = [a for a in args if not isinstance(a, _C.dtype)]
                others = {k: v for k, v in kwargs.items() if not isinstance(v, _C.dtype)}
                return t.to(*rest, **others) if rest or others else t
            return t.to(*args, **kwargs)

        return self._convert(convert)

    def float(self):
        return self.to(_C.float32)

    def double(self):
        return self.to(_C.float64)

    def half(self):
        return self.to(_C.float16)

    def bfloat16(self):
        return self.to(_C.bfloat16)

    def cpu(self):
        return self.to("cpu")

    def cuda(self, device=None):
        """Moves parameters and buffers to a CUDA device: a number, a device, or None for the current one."""
        if device is None:
            return self.to("cuda")
        return self.to(f"cuda:{device}" if isinstance(device, int) else device)

    def state_dict(self, destination=None, prefix=""):
        state = collections.OrderedDict() if destination is None else destination
        for name, p in self._parameters.items():
            if p is not None:
                state[prefix + name] = p.detach()
        for name, b in self._buffers.items():
            if b is not None and name not in self._non_persistent:
                state[prefix + name] = b.detach()
        for name, child in self.named_children():
            child.state_dict(state, prefix + name + ".")
        return state

    def load_state_dict(self, state_dict, strict=True):
        if not isinstance(state_dict, collections.abc.Mapping):
            raise TypeError(f"expected a dict of tensors as the state, got {type(state_dict).__name__}")
        own = self.state_dict()
        missing = [name for name in own if name not in state_dict]
        unexpected = [name for name in state_dict if name not in own]
        problems = []
        if strict and missing:
            problems.append("Missing key(s) in state_dict: " + ", ".join(map(repr, missing)))
        if strict and unexpected:
            problems.append("Unexpected key(s) in state_dict: " + ", ".join(map(repr, unexpected)))
        for name, tensor in own.items():
            if name in state_dict and not isinstance(state_dict[name], Tensor):
                problems.append(f"expected a Tensor as {name}, got {type(state_dict[name]).__name__}")
            elif name in state_dict and state_dict[name].shape != tensor.shape:
                problems.append(
                    f"size mismatch for {name}: copying a param with shape "
                    f"{state_dict[name].shape} from checkpoint, the shape in current model is "
                    f"{tensor.shape}."
                )
        if problems:
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t"
                + "\n\t".join(problems)
            )
        for name, tensor in own.items():
            if name in state_dict:
                tensor.copy_(state_dict[name])
        return _LoadResult(missing, unexpected)

    # ---- text ----

    def extra_repr(self):
        return ""

    def __repr__(self):
        lines = [
            f"({name}): " + repr(child).replace("\n", "\n  ")
            for name, child in self._modules.items()
        ]
        extra = self.extra_repr()
        if not lines:
            return f"{type(self).__name__}({extra})"
        inner = "\n  ".join(([extra] if extra else []) + lines)
        return f"{type(self).__name__}(\n  {inner}\n)"


def classes_in(names):
    """Which of a file's names are modules for everybody."""
    return [
        name
        for name, value in names.items()
        if isinstance(value, type)
        and issubclass(value, Module)
        and value is not Module
        and not name.startswith("_")
    ]
