"""Random Python functions with tensors, made from a seed.

`generate(seed)` returns a Program: the source of a module with the entry function `f` and the list `CALLS`. Each of its
five elements is (change, arguments): `change()` is None or a function that changes a global variable or an attribute before
the call, `arguments()` returns the positional and the keyword arguments, made anew. In an order that the seed decides, the
calls repeat the first one, change sizes, values, types, and globals. The source needs a module under the name `torch` in its
globals. The same seed makes the same source with every run of Python.

Types are tracked (random_base.py), so most programs raise nothing that they do not mean to raise. Loops are bounded, and
numbers stay small. Programs are made by templates with typed holes:

    random_tensors.py, random_expressions.py     expressions
    random_statements.py, random_control.py      statements
    random_features.py                           groups of statements with rare constructs
    random_definitions.py                        globals, classes, helpers
"""

from random_base import (ANY, COLUMN, DEQUE_INT, DICT_FLOAT, DICT_INT, DICT_LIST, DICT_X, LIST_FLOAT, LIST_INT, LIST_STR, LIST_X, NM,
                         PAIR, SCALAR, SET_INT, SET_STR, TRUTH, VECTOR, WHOLE, X, Function, Scope)
from random_definitions import Definitions

CALL_COUNT = 5
KINDS = ("same", "sizes", "values", "types", "globals")
PARAMETERS = (X, X, VECTOR, WHOLE, TRUTH, COLUMN, SCALAR, ("T", "f", ("m", "n"))) + ("int",) * 4 + ("float",) * 2 + ("bool",) * 2 + \
    ("str", "str", "bytes", "num", "num", "num", "num", "seq") + (LIST_INT, LIST_INT, LIST_STR, LIST_FLOAT, LIST_X, LIST_X, DICT_INT, DICT_X,
                                                    DICT_FLOAT, DICT_LIST, SET_INT, SET_STR, DEQUE_INT, PAIR, ("opt", X),
                                                    ("opt", X), ANY, ANY, ("tuple", ("int", X)), "dtype", "function")
ANY_VALUES = ("1", "0", "2.5", "True", "None", "'text'", "[1, 2]", "(1, 2)", "{'a': 1}", "torch.tensor([1.0, 2.0])", "torch.tensor(3)",
              "-0.0", "range(3)", "len", "float('nan')", "Point(0, 2)", "Record(torch.zeros(2), 4)", "Color.RED", "{1, 2}", "b'ab'",
              "slice(1, 2)", "frozenset([1])", "collections.OrderedDict(a=1)", "2 + 1j", "int", "torch.float64", "iter([1, 2])",
              "(value for value in (1, 2))", "functools.partial(max, 1)", "torch.Size([1, 2])", "enumerate('ab')", "collections.Counter('aab')",
              "lambda: 1", "math", "bytearray(b'k')", "collections.defaultdict(int)", "...", "NotImplemented", "torch.device('cpu')",
              "[].append", "Record(torch.zeros(2), 4).__repr__", "torch.device('cpu')", "collections.Counter.fromkeys", "ValueError('v')", "property(len)", "object", "collections.deque([1], maxlen=2)", "operator.itemgetter(0)")
# Numbers, and equal ones that behave differently.
NUMBERS = {"1": ("1.0", "True", "1"), "2": ("2.0", "-2", "2"), "0": ("0.0", "-0.0", "False"), "0.5": ("float('nan')", "1", "True")}
DEFAULT_DTYPES = {"f": "", "i": ", dtype=torch.int64", "b": ", dtype=torch.bool"}
SPECIALS = (".requires_grad_()", ".requires_grad_()", " * torch.ones((), requires_grad=True)", ".long()")


class Program:
    """A generated program. Exceptions from lines whose numbers are in `intended` are meant."""

    def __init__(self, seed, source, intended):
        self.seed = seed
        self.source = source
        self.intended = intended


class Arguments:
    """Makes the texts of arguments for one call."""

    def __init__(self, rng, sizes, wide=False, narrow=False, odd=False, special=""):
        self.rng, self.sizes = rng, sizes
        self.wide = wide        # floating tensors have float64
        self.narrow = narrow    # whole tensors have int32
        self.odd = odd          # types of numbers, and strides, differ
        self.special = special  # changes floating tensors in a way that some programs do not allow

    def pick(self, options):
        return options[int(self.rng.random() * len(options))]

    def number(self, element):
        if element == "f":
            return self.pick(("0.5", "1.0", "-1.5", "2.0", "0.0", "-0.25", "3.0", "-2.0", "1.5"))
        return self.pick(("0", "1", "2", "3", "-1", "5")) if element == "i" else self.pick(("True", "False"))

    def tensor(self, element, shape):
        sizes = [self.sizes.get(size, size) for size in shape]
        dtype = {"f": ", dtype=torch.float64" if self.wide else "", "i": ", dtype=torch.int32" if self.narrow else "", "b": ""}[element]
        turned = self.odd and len(sizes) == 2
        if turned:
            sizes.reverse()
        if 0 in sizes:
            return f"torch.zeros({', '.join(map(str, sizes))}{dtype or DEFAULT_DTYPES[element]})" + (".t()" if turned else "")
        if not sizes:
            body = self.number(element)
        elif len(sizes) == 1:
            body = "[" + ", ".join([self.number(element) for _ in range(sizes[0])]) + "]"
        else:
            body = "[" + ", ".join(["[" + ", ".join([self.number(element) for _ in range(sizes[1])]) + "]"
                                    for _ in range(sizes[0])]) + "]"
        return f"torch.tensor({body}{dtype})" + (".t()" if turned else "") + (self.special if element == "f" else "")

    def scalar(self, kind):
        """Returns a number or string."""
        if kind == "num":
            base = self.pick(tuple(NUMBERS))
            other = self.pick(NUMBERS[base])
            return other if self.odd else base
        if kind == "float":
            text = self.pick(("0.5", "1.5", "-2.0", "0.0", "-0.0", "2.25", "0.0"))
            return {"0.0": "-0.0", "-0.0": "0.0"}.get(text, text) if self.odd else text
        return self.pick({
            "int": ("0", "1", "2", "3", "4", "-1", "7"),
            "bool": ("True", "False"), "str": ("'a'", "'ab'", "'bab'", "''", "'xyz'"), "bytes": ("b'ab'", "b'q'", "b'xyz'"),
            "dtype": ("torch.float32", "torch.float64"),
            "function": ("abs", "(lambda value: value + 1)", "operator.neg", "functools.partial(max, 1)"),
        }.get(kind) or (("[1, 2, 3]", "(4, 5)", "range(3)", "collections.deque([1, 2])", "{1: 2, 3: 4}") if self.odd
                        else ("[1, 2, 3]", "[4, 5]")))

    def value(self, kind):
        if type(kind) is str:
            return self.scalar(kind)
        place = kind[0]
        if place == "T":
            return self.tensor(kind[1], kind[2])
        if place == "list":
            return "[" + ", ".join([self.value(kind[1]) for _ in range(2 + int(self.rng.random() * 3))]) + "]"
        if place == "dict":
            keys = {"str": ("'a'", "'b'", "'c'", "'d'"), "int": ("0", "1", "2")}[kind[1]]
            count = 3 if self.rng.random() < 0.7 else len(keys)
            return "{" + ", ".join([f"{key}: {self.value(kind[2])}" for key in keys[:count]]) + "}"
        if place == "set":
            return "{" + ", ".join([self.value(kind[1]) for _ in range(3)]) + "}"
        if place == "deque":
            return "collections.deque([" + ", ".join([self.value(kind[1]) for _ in range(3)]) + "])"
        if place == "tuple":
            return "(" + ", ".join([self.value(part) for part in kind[1]]) + ",)"
        if place == "opt":
            return "None" if self.rng.random() < 0.4 else self.value(kind[1])
        if place == "obj":
            return f"{kind[1].name}({', '.join([self.value(part) for part in kind[1].construct])})"
        return self.pick(ANY_VALUES)


class Generator(Definitions):
    """Makes one program."""

    def __init__(self, seed):
        super().__init__(seed)
        self.seed = seed
        self.data_rate = self.pick((0.0, 0.0, 0.2, 0.6))

    def program(self):
        self.scope = Scope({}, ANY, "module")
        self.module()
        parameters = self.entry()
        self.calls(parameters)
        self.add_shared_classes()
        return Program(self.seed, "\n".join(self.lines) + "\n", self.intended)

    def entry(self):
        """Emits the entry function, and returns its parameters: (name, type, how it is given)."""
        parameters = [("x", X, "position")]
        for _ in range(self.between(2, 5)):
            kind = self.pick(PARAMETERS)
            if self.classes and self.chance(0.2):
                kind = ("obj", self.pick(self.classes))
            parameters.append((self.fresh("arg"), kind, "position"))
        if self.chance(0.15):
            parameters.append(("*" + self.fresh("rest"), "int", "star"))
        if self.chance(0.25):
            parameters.append((self.fresh("arg"), self.pick(("int", X, "str", LIST_INT)), "keyword"))
        if self.chance(0.12):
            parameters.append(("**" + self.fresh("named"), "int", "named"))
        texts = []
        star = any(how == "star" for _, _, how in parameters)
        for name, kind, how in parameters:
            if how == "keyword" and not star:
                texts.append("*")
            texts.append(name + ("=None" if type(kind) is tuple and kind[0] == "opt" and how == "keyword" else ""))
        types = {}
        for name, kind, how in parameters:
            types[name.lstrip("*")] = ("hidden",) if how in ("star", "named") else self.held(kind)
        self.open_function(types, ANY)
        with self.block(f"def f({', '.join(texts)}):"):
            self.declare((), self.scope)
            for name, kind, how in parameters:
                self.polymorphic(name, kind, how)
            self.budget = self.between(7, 14)
            while self.budget > 0:
                self.statement(3)
            if self.chance(0.2):
                self.jump(0)
            if self.chance(0.05):
                self.fail()
            if not self.chance(0.03):
                self.emit(f"return {self.result_text(5)}")
        return parameters

    def held(self, kind):
        """Returns the type that the function body sees of a parameter."""
        if kind == "function":
            return ("fn", Function(["int"], "int"))
        return ("hidden",) if kind in ("num", "seq", "dtype") else kind

    def polymorphic(self, name, kind, how):
        """Emits first uses of parameters whose type changes between calls."""
        if how in ("star", "named"):
            name = name.lstrip("*")
            form = self.pick(("sum({})", "len({})", "sum([*{}])") if how == "star" else ("len({})", "sum({}.values())", "len({**{}, 'k': 1})"))
            self.let('int', form.replace('{}', name))
        elif kind == "num":
            target = self.fresh()
            self.emit(f"{target} = " + self.pick(("x * {}", "x + {} * 2", "x - {} * 1", "{} + x", "x.add({})", "x * abs({})")).format(name))
            self.bind(target, X)
            form = self.pick(("{} > 0", "{} == 1", "isinstance({}, bool)", "not {}", "type({}) is float", "{} in (0, 2)"))
            self.let("bool", form.format(name))
        elif kind == "seq":
            form = self.pick(("sum({})", "len({})", "max({})", "list({})[0]", "sum(value * 2 for value in {})", "[*{}][-1]",
                              "next(iter({}))", "sorted({})[0]", "sum(dict(enumerate({})).values())", "min({}, default=1)"))
            self.let('int', form.format(name))
        elif kind == "dtype":
            form = self.pick(("x.to({})", "x + torch.ones(1, dtype={})", "torch.zeros_like(x, dtype={}) + x",
                              "x if x.dtype == {} else x + 1"))
            self.let(X, form.format(name))

    def calls(self, parameters):
        """Emits what the five calls are given, and what changes before them."""
        rng = self.rng
        base_seed = self.random()
        sizes = {"n": self.between(1, 4), "m": self.between(1, 4)}
        order = ["same"] + self.rng.sample(KINDS, CALL_COUNT - 1)
        alias = self.chance(0.25)
        entries = []
        for index, kind in enumerate(order):
            chosen = dict(sizes)
            if kind == "sizes":
                chosen = {"n": self.between(1, 4), "m": self.between(1, 4)}
            seed = base_seed if kind in ("same", "globals", "types") else self.random()
            if kind == "sizes" and self.chance(0.04):
                chosen[self.pick(NM)] = 0
            if kind == "types":
                special = self.pick(SPECIALS) if self.chance(0.15) else ""
                maker = Arguments(type(rng)(seed), chosen, self.chance(0.7), self.chance(0.5), self.chance(0.7), special)
            else:
                maker = Arguments(type(rng)(seed), chosen)
            positions, keywords = [], []
            for name, its, how in parameters:
                if how == "star":
                    positions += [maker.value(its) for _ in range(int(maker.rng.random() * 3))]
                elif how == "named":
                    keywords += [f"{key!r}: {maker.value(its)}" for key in ("k1", "k2") if maker.rng.random() < 0.6]
                elif how == "keyword":
                    keywords.append(f"{name!r}: {maker.value(its)}")
                else:
                    positions.append(maker.value(its))
            if alias and 0 not in chosen.values():
                self.alias(parameters, positions, maker)
            change = "None"
            if kind == "globals":
                change = f"change{index}"
                self.change(change)
            entries.append(f"    ({change}, lambda: (({', '.join(positions)},), {{{', '.join(keywords)}}})),  # {kind}")
        self.lines += ["CALLS = ["] + entries + ["]"]

    def alias(self, parameters, positions, maker):
        """Lets two arguments be one object, or a tensor and a view of it."""
        positions[0] = f"(shared := {positions[0]})"
        for index, (_, kind, how) in enumerate(parameters):
            if index == 0 or how != "position":
                continue
            if kind == X:
                positions[index] = "shared" if maker.rng.random() < 0.6 else "shared[:]"
            elif kind == VECTOR and maker.rng.random() < 0.5:
                positions[index] = "shared[0]"
            elif kind == ("T", "f", ("m", "n")):
                positions[index] = "shared.t()"
            elif kind == LIST_X:
                positions[index] = "[shared, shared]"
            elif kind == DICT_X:
                positions[index] = "{'a': shared, 'b': shared, 'c': shared.clone()}"

    def change(self, name):
        """Emits the function that changes something of the module."""
        options = list(self.changes)
        for cls in self.classes:
            options.append((None, f"{cls.name}.made = {self.between(6, 9)}"))
            for kind, templates in cls.uses.items():
                for template in templates[:1]:
                    if kind == "int" and ".doubled" in template[-1]:
                        options.append((None, f"{cls.name}.doubled = property(lambda self: 11)"))
        for own, kind in self.scope_of_module.items():
            if type(kind) is tuple and kind[0] == "obj":
                number = next(key for key, held in kind[1].attributes.items() if held == "int")
                options.append((None, f"{own}.{number} += 3"))
        chosen = self.rng.sample(options, min(len(options), self.between(1, 2)))
        self.emit(f"def {name}():")
        names = [own for own, text in chosen if own and text.startswith(own + " ")]
        if names:
            self.emit(f"    global {', '.join(names)}")
        for _, text in chosen:
            self.emit("    " + text)

    @property
    def scope_of_module(self):
        return {name: kind for name, kind in self.scope.names.items() if name.startswith("OBJECT")}


def generate(seed):
    """Returns the program of a seed."""
    return Generator(seed).program()


if __name__ == "__main__":
    import sys
    for given in sys.argv[1:]:
        print(generate(int(given)).source)
