"""Modules that hold others in order or by name."""

from collections import OrderedDict

from wick.nn.module import Module, Parameter


class _Ordered(Module):
    """Modules under the names "0", "1", …"""

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(*self._as_arguments(list(self)[index]))
        return list(self)[index]

    def __setitem__(self, index, module):
        self._modules[list(self._modules)[index]] = module

    def _as_arguments(self, modules):
        return modules

    def append(self, module):
        self.add_module(str(len(self)), module)
        return self


class Sequential(_Ordered):
    """Calls one module after the other."""

    def __init__(self, *modules):
        super().__init__()
        if len(modules) == 1 and isinstance(modules[0], OrderedDict):
            for name, module in modules[0].items():
                self.add_module(name, module)
        else:
            for module in modules:
                self.append(module)

    def forward(self, input):
        for module in self:
            input = module(input)
        return input


class ModuleList(_Ordered):
    """A list of modules."""

    def __init__(self, modules=()):
        super().__init__()
        self.extend(modules)

    def _as_arguments(self, modules):
        return [modules]

    def extend(self, modules):
        for module in modules:
            self.append(module)
        return self


class ModuleDict(Module):
    """Modules by name."""

    def __init__(self, modules=()):
        super().__init__()
        self.update(modules)

    def update(self, modules):
        for name, module in dict(modules).items():
            self.add_module(name, module)

    def __getitem__(self, name):
        return self._modules[name]

    def __setitem__(self, name, module):
        self.add_module(name, module)

    def __delitem__(self, name):
        del self._modules[name]

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules)

    def __contains__(self, name):
        return name in self._modules

    def keys(self):
        return self._modules.keys()

    def items(self):
        return self._modules.items()

    def values(self):
        return self._modules.values()


class ParameterList(Module):
    """A list of parameters."""

    def __init__(self, parameters=()):
        super().__init__()
        for parameter in parameters:
            self.append(parameter)

    def append(self, parameter):
        if not isinstance(parameter, Parameter):
            parameter = Parameter(parameter)
        self.register_parameter(str(len(self)), parameter)
        return self

    def __len__(self):
        return len(self._parameters)

    def __iter__(self):
        return iter(self._parameters.values())

    def __getitem__(self, index):
        return list(self)[index]


class ParameterDict(Module):
    """Parameters by name."""

    def __init__(self, parameters=()):
        super().__init__()
        for name, parameter in dict(parameters).items():
            self[name] = parameter

    def __setitem__(self, name, parameter):
        if not isinstance(parameter, Parameter):
            parameter = Parameter(parameter)
        self.register_parameter(name, parameter)

    def __getitem__(self, name):
        return self._parameters[name]

    def __len__(self):
        return len(self._parameters)

    def __iter__(self):
        return iter(self._parameters)

    def items(self):
        return self._parameters.items()
