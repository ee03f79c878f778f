"""Modules whose members the language's front end knows: torch, torch.linalg, torch.ops.aten, …"""

import importlib
import sys
import types

from wick import _C


class Namespace(types.ModuleType):
    """A module of the language. Members are looked up when they are first asked for and kept."""

    def __init__(self, name, language_name, own=None):
        super().__init__(name)
        self.__path__ = []
        self.__dict__["_language_name"] = language_name
        self.__dict__.update(own or {})

    def __getattr__(self, name):
        return find_member(self, self.__dict__["_language_name"], name)


def find_member(module, language_name, name):
    """Puts a member into the module, and returns it. AttributeError when there is none."""
    found = _C._member(language_name, name)
    if found is not None:
        kind, what = found
        if kind == "module":
            what = submodule(module.__name__ + "." + name, what)
        setattr(module, name, what)
        return what
    hint = _C._suggest(language_name, name) if not name.startswith("_") else ""
    raise AttributeError(f"module '{module.__name__}' has no attribute '{name}'{hint}")


def submodule(name, language_name, own=None):
    """The module of that name, so that `import` finds it too."""
    module = sys.modules.get(name)
    if module is None:
        module = Namespace(name, language_name, own)
        sys.modules[name] = module
    return module


class _Finder:
    """Lets `import wick.torch.nn.functional` find what attributes give."""

    def find_spec(self, name, path=None, target=None):
        if not name.startswith("wick.torch."):
            return None
        parent, _, last = name.rpartition(".")
        found = getattr(importlib.import_module(parent), last, None)
        if not isinstance(found, types.ModuleType):
            return None
        from importlib.machinery import ModuleSpec

        return ModuleSpec(name, self, is_package=True, loader_state=found)

    def create_module(self, spec):
        return spec.loader_state

    def exec_module(self, module):
        pass


sys.meta_path.append(_Finder())
