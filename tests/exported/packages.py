"""Packages of torch.export as Python values, to be changed and written again."""
import io
import json
import pickle
import sys
import types
import zipfile

MODELS = "models/"
CONFIG = "_config.json"
# Numbers of dtypes in the schema: the class of storages that torch.save names, and the bytes of an element.
STORAGES = {
    1: ("ByteStorage", 1), 2: ("CharStorage", 1), 3: ("ShortStorage", 2), 4: ("IntStorage", 4), 5: ("LongStorage", 8),
    6: ("HalfStorage", 2), 7: ("FloatStorage", 4), 8: ("DoubleStorage", 8), 10: ("ComplexFloatStorage", 8),
    11: ("ComplexDoubleStorage", 16), 12: ("BoolStorage", 1), 13: ("BFloat16Storage", 2),
}


def read(path):
    """The records of a package by name, without the folder that holds them."""
    with zipfile.ZipFile(path) as archive:
        return {name.split("/", 1)[1]: archive.read(name) for name in archive.namelist()}


def write(records, folder="package/"):
    """The bytes of a ZIP archive; `folder` holds the records."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in records.items():
            archive.writestr(folder + name, data)
    return out.getvalue()


def models(records):
    """The names of a package's models."""
    return [name[len(MODELS):-len(".json")] for name in records if name.startswith(MODELS) and name.endswith(".json")]


def program(records, name="model"):
    return json.loads(records[f"{MODELS}{name}.json"])


def config(records, kind, name="model"):
    """The descriptions of the tensors of a model; `kind` is "weights" or "constants"."""
    return json.loads(records.get(f"data/{kind}/{name}_{kind}{CONFIG}", b'{"config": {}}'))["config"]


def numbers(sizes):
    return [size["as_int"] for size in sizes]


class Storage:
    def __init__(self, path, dtype):
        self.path, self.dtype = path, dtype


class Tensor:
    def __init__(self, path, meta):
        self.storage, self.meta = Storage(path, meta["dtype"]), meta


class Parameter:
    def __init__(self, tensor):
        self.tensor = tensor


def saved(records, kind, entries):
    """A file of torch.save with a dict of tensors. Entries of the same bytes and sizes are one tensor."""
    folder = f"data/{kind}/"
    made, state = {}, {}
    for name, entry in entries.items():
        tensor = Tensor(entry["path_name"], entry["tensor_meta"])
        state[name] = made.setdefault(json.dumps(entry), Parameter(tensor) if entry["is_param"] else tensor)
    out = io.BytesIO()
    with torch_modules() as modules:
        pickler = Pickler(out, 2)
        pickler.modules, pickler.numbers, pickler.sizes = modules, {}, {path: len(records[folder + path]) for path in paths(entries)}
        pickler.dump(state)
    files = {"data.pkl": out.getvalue(), "byteorder": b"little"}
    for path, number in pickler.numbers.items():
        files[f"data/{number}"] = records[folder + path]
    return write(files | {"version": b"3\n"}, "archive/")


def paths(entries):
    return {entry["path_name"] for entry in entries.values()}


class torch_modules:
    """Modules with the names that files of torch.save speak of."""

    NAMES = ("torch", "torch._utils")

    def __enter__(self):
        self.before = {name: sys.modules.get(name) for name in self.NAMES}
        made = {name: types.ModuleType(name) for name in self.NAMES}
        made["torch"]._utils = made["torch._utils"]
        for name in ("_rebuild_tensor_v2", "_rebuild_parameter"):
            self.define(made["torch._utils"], name)
        for name, _ in STORAGES.values():
            self.define(made["torch"], name)
        sys.modules.update(made)
        return made

    @staticmethod
    def define(module, name):
        made = type(name, (), {"__module__": module.__name__})
        setattr(module, name, made)

    def __exit__(self, *exception):
        for name, module in self.before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


class Pickler(pickle.Pickler):
    def persistent_id(self, value):
        if not isinstance(value, Storage):
            return None
        name, size = STORAGES[value.dtype]
        number = self.numbers.setdefault(value.path, len(self.numbers))
        return "storage", getattr(self.modules["torch"], name), str(number), "cpu", self.sizes[value.path] // size

    def reducer_override(self, value):
        utils = self.modules["torch._utils"]
        if isinstance(value, Parameter):
            return utils._rebuild_parameter, (value.tensor, value.tensor.meta["requires_grad"], {})
        if isinstance(value, Tensor):
            meta = value.meta
            sizes, strides = tuple(numbers(meta["sizes"])), tuple(numbers(meta["strides"]))
            return utils._rebuild_tensor_v2, (value.storage, meta["storage_offset"]["as_int"], sizes, strides, False, {})
        return NotImplemented
