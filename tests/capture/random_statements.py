"""Simple statements, and writes to variables, attributes, items, containers and tensors."""

from random_base import (ANY, KEYS, LIST_INT, LIST_X, PAIR, SCALAR, VECTOR, X, Scope, table)
from random_expressions import VARIABLE_TYPES, Expressions

LIST_WRITES = table("""
    4: {o}.append({e})
    {o}.insert({#}, {e})
    2: {o}.extend([{e}, {e}])
    {o}.extend({=}[:2])
    2: {o}[0] = {e}
    {o}[-1] = {e}
    {o}[{bit}] = {e}
    {o}[1:2] = [{e}]
    {o}[:1] = ({e}, {e})
    {o}[:] = {=}
    {o}[::2] = list({o}[::2])
    {o}.reverse()
    {o}.append({o}.pop())
    {o}.insert(0, {o}.pop(-1))
    {o}[0], {o}[1] = {o}[1], {o}[0]
    {o}.__setitem__(0, {e})
    del {o}[2:]
    del {o}[:-2]
    if len({o}) > 2:;del {o}[-1]
    if len({o}) > 2:;{o}.pop()
    if len({o}) > 2:;{@1} = {o}.pop(0)
    while len({o}) > 2:;{o}.pop()
    {@1} = [{e}, {e}];{o}.clear();{o}.extend({@1})
    {@1} = {o};{@1}.append({e})
    {@1} = {o}.append;{@1}({e})
    operator.setitem({o}, 0, {e})
    list.append({o}, {e})
    [{o}.append({e}) for {@1} in range(2)]
    (lambda {@1}: {@1}.append({e}))({o})
    {@1}, *{@2} = {o}
    {@1}, {@2} = {o}[:2]
    *{@1}, {@2} = {o}
    {@1}, *{@2}, {@3} = {o}
""")
SORTED_WRITES = table("""
    {o}.sort()
    {o}.sort(reverse=True)
    {o}.sort(key=lambda {@1}: str({@1}))
    if len({o}) > 2:;{o}.remove({o}[1])
    {o}.remove({o}[0]);{o}.append({e});{o}.append({e})
    {o}[{o}.index({o}[-1])] = {e}
""")
DICT_WRITES = table("""
    4: {o}[{keya}] = {e}
    3: {o}[{otherkeyed}] = {e}
    {o}.update({{keyb}: {e}})
    {o}.update({=})
    {o}.update([({keya}, {e})])
    2: {o}.setdefault({otherkeyed}, {e})
    {o}.pop({otherkeyed}, None)
    {@1} = {o}.pop({otherkeyed}, {e})
    if {otherkeyed1} in {o}:;del {o}[{otherkeyed1}]
    {@1} = {e};{o}[{keya}] = {o}.pop({keyb});{o}[{keyb}] = {@1}
    {@1} = {e};del {o}[{keyc}];{o}[{keyc}] = {@1}
    {@1} = {e};{o}.pop({otherkeyed1}, 0);{o}[{otherkeyed1}] = {@1};{o}.popitem()
    {@1} = dict({=});{o}.clear();{o}.update({@1})
    {o}[{keya}], {o}[{keyb}] = {o}[{keyb}], {o}[{keya}]
    for {@1} in list({o}):;{o}[{@1}] = {o}[{@1}]
    for {@1} in list({o}):;if {@1} not in ({keya}, {keyb}, {keyc}):;del {o}[{@1}]
    {@1} = {o}.get({otherkeyed});{@2} = {@1} is None
    {o}.__setitem__({keyb}, {e})
""")
SET_WRITES = table("""
    3: {o}.add({e})
    {o}.discard({e})
    {o}.update({=})
    {o}.update([{e}, {e}])
    {o}.difference_update([{e}])
    {o}.intersection_update({=})
    {o}.symmetric_difference_update([{e}])
    {@1} = {e};if {@1} in {o}:;{o}.remove({@1})
    {o}.clear();{o}.add({e})
""")
DEQUE_WRITES = table("""
    2: {o}.append({e})
    2: {o}.appendleft({e})
    {o}.append({o}.popleft())
    {o}.appendleft({o}.pop())
    {o}.rotate({#})
    {o}.rotate(-1)
    {o}.extend([{e}])
    {o}.extendleft([{e}, {e}])
    {o}[0] = {e}
    {o}.reverse()
    {o}.append({e});{@1} = {o}.popleft();{o}.append({@1})
    {o}.append({e});del {o}[0];{o}.append({e})
""")
TENSOR_WRITES = table("""
    3: {o}.add_({new})
    2: {o}.add_({n})
    2: {o}.mul_({n})
    {o}.sub_({new}, alpha=2)
    {o}.clamp_(-4, 4)
    {o}.clamp_(min=0)
    {o}.zero_()
    {o}.fill_({n})
    2: {o}.copy_({new})
    {o}.neg_()
    {o}.relu_()
    {o}.abs_()
    {o}.masked_fill_({mask}, {n})
    {o}[...] = {n}
    {o}[{mask}] = {n}
    {o}[...] += {n}
    {o}.unsqueeze(0).add_({n})
    {o}.detach().add_({n})
    {o}.data.mul_({n})
    torch.add({o}, 1, out={o})
    {@1} = {o}.add_({n});{@1}.mul_({n})
    {@1} = {o}.view_as({o});{@1}.add_({n})
    {o}.round_().floor_()
""")
RANKED_WRITES = table("""
    3: {o}[0] = {n}
    2: {o}[:] = {new}
    {o}[-1] += {n}
    {o}[0].add_({n})
    {o}[0] = {newrow}
    {o}[{o} > {n}] = {n}
    {o}.select(0, 0).fill_({n})
    {o}.narrow(0, 0, 1).mul_({n})
    {o}.reshape(-1)[0] = {n}
    {o}[::2] *= 2
    {o}[1:] = {n}
    {o}[torch.tensor([0])] = {n}
    {o}.index_fill_(0, torch.tensor([0]), 1.0)
    for {@1} in {o}:;{@1}.add_({n})
    for {@1} in range({o}.shape[0]):;{o}[{@1}] += {n}
    {@1} = {o}[0];{@1} += 1
    {@1}, *{@2} = {o}
    [{@1}.mul_({n}) for {@1} in {o}.unbind(0)]
""")
MATRIX_WRITES = table("""
    2: {o}[:, 0] = {n}
    {o}[0, 0] = {n}
    {o}[:, :1] += {n}
    {o}.t().mul_({n})
    {o}.t()[0] = {n}
    {o}[0][0] = {n}
    {o}[..., -1] -= {n}
    {o}[:, -1].add_({n})
    {o}.diagonal().fill_({n})
    {o}[0, ...] = {n}
    {o}[None, 0] = {n}
""")
WHOLE_WRITES = table("""
    {o}.fill_(1)
    {o}.zero_()
    {o}.add_({new})
    {o}.copy_({new})
    {o}.masked_fill_({mask}, 1)
    {o}[...] = 1
    {o}.bitwise_and_({new})
""")
TRUTH_WRITES = table("""
    {o}.logical_not_()
    {o}.fill_(True)
    {o}.copy_({new})
    {o}.logical_and_({new})
    {o}[...] = False
""")
# How a variable of a type is written by an augmented assignment. A second statement keeps numbers small.
AUGMENTS = {
    "int": table("""
        5: {o} += {i}
        3: {o} -= {i}
        {o} *= {#}
        {o} //= {#}
        {o} %= {mod}
        {o} &= {i}
        {o} |= {#}
        {o} ^= {#}
        {o} <<= 1;{o} %= 1024
        {o} >>= {#}
        {o} **= 2;{o} %= 97
        """),
    "float": table("""
        3: {o} += {f}
        {o} -= {f}
        {o} *= {half}
        {o} /= 2
        {o} //= 2
        {o} %= 3
        {o} += {i}
        """),
    "bool": table("""
        {o} &= {b}
        {o} |= {b}
        {o} ^= {b}
        """),
    "str": table("""
        {o} += {s};{o} = {o}[-8:]
        {o} *= 2;{o} = {o}[:7]
        """),
    "bytes": table("{o} += b'.';{o} = {o}[-5:]"),
    "list": table("""
        2: {o} += [{e}]
        {o} += ({e}, {e})
        {o} += {=}[:1]
        {o} *= 2;del {o}[4:]
        """),
    "dict": table("""
        {o} |= {=}
        {o} |= {{otherkeyed}: {e}}
        """),
    "set": table("""
        {o} |= {=}
        {o} &= {=} | {{e}}
        {o} -= {{e}}
        {o} ^= {{e}}
        """),
    "deque": table("""
        {o} += [{e}]
        {o} += ({e},)
        """),
    "f": table("""
        4: {o} += {new}
        2: {o} += {n}
        2: {o} -= {new}
        2: {o} *= {n}
        {o} /= 2
        {o} *= {new};{o}.clamp_(-8, 8)
        {o} //= 2
        {o} %= 4
        {o} **= 2;{o}.clamp_(max=9)
        """),
    "i": table("""
        2: {o} += {#}
        {o} -= {new}
        {o} *= {#}
        {o} //= {#}
        {o} %= {#}
        {o} &= {new}
        {o} |= {#}
        {o} ^= {new}
        """),
    "b": table("""
        {o} &= {new}
        {o} |= {new}
        {o} ^= {new}
        """),
}
# Statements that raise, and what they raise.
ERRORS = table("""
    3: raise {error}("on purpose", {i})
    2: raise {error}({s})
    raise {error}
    raise ValueError(f"on purpose {{i}}")
    raise KeyError({s}) from {error}("cause")
    raise RuntimeError("on purpose") from None
    [][{i}]
    {}["missing"]
    {d}["missing"]
    {i} // 0
    {f} / 0
    int("not a number")
    None.nothing
    ({i}).nothing
    {x}.nothing
    {li}[99]
    {@1} = {@2}{@3}
    len({i})
    {s} + {i}
    {i}()
    assert {i} is None, "on purpose"
    next(iter(()))
    {@1}, {@2} = {i}, {i}, {i}
    {@1}, {@2}, {@3}, {@4}, {@5}, {@6}, {@7} = {p}
    {@1}, *{@2} = []
    {x} @ torch.zeros(7, 9)
    {x} + torch.zeros(9, 9, 9)
    {x}.view(7, 13, -1)
    {x}[77]
    {x}.reshape(3, 3, 3, 7)
    torch.cat([{x}, torch.zeros(1, 2, 3)])
    bool(torch.zeros(2))
    {li}.remove(12345)
    {p}[0] = 1
    del {d}["missing"]
    (lambda: {i} // 0)()
    [{@1} // 0 for {@1} in {li}]
    raise NotImplementedError
    operator.truediv({i}, 0)
    [].pop()
    {s}.index("missing")
    math.sqrt(-1.0)
    torch.zeros(2).item()
    getattr({i}, "nothing")
    isinstance({i}, {i})
""")
CAUGHT = ("Exception", "Exception", "(ValueError, TypeError)", "ArithmeticError", "LookupError", "RuntimeError", "ZeroDivisionError",
          "(IndexError, KeyError)", "AttributeError", "TypeError", "ValueError", "AssertionError", "StopIteration", "NameError")


def new(self, kind, depth):
    """A tensor that shares no storage with the one that is written."""
    return self.new_tensor(self.broadcastable(kind) if kind[1] == "f" else kind, depth - 1)


def new_row(self, kind, depth):
    return self.new_tensor(("T", kind[1], kind[2][1:]), depth - 1)


def error_name(self, kind, depth):
    return self.pick(self.errors)


class Statements(Expressions):
    """Makes statements that contain no others."""

    special_holes = {**Expressions.special_holes, "new": new, "newrow": new_row, "error": error_name}
    errors = ("ValueError",)

    def write(self, text):
        """Emits statements that stand in one template: ";" parts them, and what follows a colon is indented."""
        indent = self.indent
        for line in text.split(";"):
            self.emit(line)
            self.indent = self.indent + 1 if line.endswith(":") else indent
        self.indent = indent

    def type_of_variable(self):
        kind = self.pick(VARIABLE_TYPES)
        if self.classes and self.chance(0.08):
            usable = [cls for cls in self.classes if cls.construct is not None]
            if usable:
                return ("obj", self.pick(usable))
        return kind

    def place(self, kind=None):
        """Returns (text, type) of something that can be assigned to, or None."""
        scope = self.scope
        found = []
        for name, its in scope.names.items():
            if name in scope.own:
                if kind is None or its == kind:
                    found.append((name, its))
            if type(its) is not tuple:
                continue
            if its[0] == "obj" and not its[1].frozen:
                for attribute, held in its[1].attributes.items():
                    if kind is None or held == kind:
                        found.append((f"{name}.{attribute}", held))
            elif its[0] in ("list", "deque") and (kind is None or its[1] == kind):
                found.append((f"{name}[{self.pick(('0', '1', '-1'))}]", its[1]))
            elif its[0] == "dict" and (kind is None or its[2] == kind):
                found.append((f"{name}[{self.pick(KEYS[its[1]])}]", its[2]))
        if not found:
            return None
        text, its = self.pick(found)
        self.use(text.split(".")[0].split("[")[0])
        return text, its

    def assign(self, depth):
        kind = self.type_of_variable()
        if kind == ANY:
            return self.emit(f"{self.fresh()} = {self.expr(ANY, 1)}")
        text = self.expr(kind, self.between(1, 3))
        self.let(kind, text)

    def rebind(self, depth):
        scope = self.scope
        found = self.writable()
        if not found:
            return self.assign(depth)
        name = self.pick(found)
        kind = scope.names[name]
        if type(kind) is tuple and kind[0] in ("fn", "genfn", "hidden"):
            return self.assign(depth)
        if scope.depth == 0 and name in scope.top and name not in self.pinned and self.chance(0.3):
            kind = self.type_of_variable()
            if kind == ANY:
                kind = "int"
        self.emit(f"{name} = {self.expr(kind, 2)}")
        scope.names[name] = kind

    def assign_place(self, depth):
        found = self.place()
        if not found or type(found[1]) is tuple and found[1][0] in ("fn", "genfn", "hidden", "any"):
            return self.assign(depth)
        self.emit(f"{found[0]} = {self.expr(found[1], 2)}")

    def augment(self, depth):
        for _ in range(4):
            found = self.place()
            if found:
                text, kind = found
                key = kind if type(kind) is str else kind[1] if kind[0] == "T" else kind[0]
                if key in AUGMENTS:
                    return self.write(self.fill(self.pick(AUGMENTS[key]), 2, kind, text))
        self.assign(depth)

    def mutate(self, depth):
        """Changes a container in place, wherever it is held."""
        kinds = [its for its in set(self.reachable()) if its[0] in ("list", "dict", "set", "deque")]
        if not kinds:
            return self.assign(depth)
        kinds.sort(key=str)
        kind = self.pick(kinds)
        target = self.pick(self.sources(kind))
        tables = {"list": LIST_WRITES, "dict": DICT_WRITES, "set": SET_WRITES, "deque": DEQUE_WRITES}
        forms = tables[kind[0]]
        if kind[0] == "list" and kind[1] in ("int", "str", "float") and self.chance(0.2):
            forms = SORTED_WRITES
        self.write(self.fill(self.pick(forms), 2, kind, target))

    def reachable(self):
        """Yields the types of variables and of attributes and items of variables."""
        for its in self.scope.names.values():
            if type(its) is tuple:
                yield its
                if its[0] == "obj":
                    for held in its[1].attributes.values():
                        if type(held) is tuple:
                            yield held
                elif its[0] in ("list", "deque", "dict") and type(its[-1]) is tuple:
                    yield its[-1]

    def write_tensor(self, depth):
        kinds = sorted({its for its in self.reachable() if its[0] == "T"}, key=str)
        if not kinds:
            return self.assign(depth)
        kind = self.pick(kinds)
        target = self.pick(self.sources(kind))
        if kind[1] != "f":
            forms = WHOLE_WRITES if kind[1] == "i" else TRUTH_WRITES
        elif len(kind[2]) == 2 and self.chance(0.35):
            forms = MATRIX_WRITES
        elif kind[2] and self.chance(0.5):
            forms = RANKED_WRITES
        else:
            forms = TENSOR_WRITES
        self.write(self.fill(self.pick(forms), 2, kind, target))

    def several(self, depth):
        """Assigns to several targets at once."""
        choice = self.between(0, 7)
        one, two = self.fresh(), self.fresh()
        if choice == 0:
            kind = self.type_of_variable()
            kind = "int" if kind == ANY else kind
            self.emit(f"{one} = {two} = {self.expr(kind, 2)}")
            self.bind(one, kind)
            self.bind(two, kind)
        elif choice == 1:
            kinds = [self.pick((X, "int", "str", LIST_INT, "float")) for _ in range(2)]
            self.emit(f"{one}, {two} = {self.expr(kinds[0], 2)}, {self.expr(kinds[1], 2)}")
            self.bind(one, kinds[0])
            self.bind(two, kinds[1])
        elif choice == 2:
            kind = self.pick((X, "int", "str"))
            found = self.writable(kind)
            if len(found) < 2:
                return self.assign(depth)
            mine, other = self.rng.sample(found, 2)
            form = self.pick(("{0}, {1} = {1}, {0}", "({0}, {1}) = [{1}, {0}]", "[{0}, {1}] = ({1}, {0})"))
            self.emit(form.format(mine, other))
        elif choice == 3:
            third = self.fresh()
            self.emit(f"{one}, {two}, {third} = {self.expr('int', 1)}, {self.expr(X, 1)}, {self.expr('str', 1)}")
            for name, kind in ((one, "int"), (two, X), (third, "str")):
                self.bind(name, kind)
        elif choice == 4:
            self.emit(f"{one}, *{two} = {self.expr(LIST_INT, 2)}")
            self.emit(f"{two} += [1, 2]")
            self.bind(one, "int")
            self.bind(two, LIST_INT)
        elif choice == 5:
            self.emit(f"({one}, {two}), {self.fresh()} = {self.expr(PAIR, 2)}, {self.expr('str', 1)}")
            self.bind(one, "int")
            self.bind(two, "int")
        elif choice == 6:
            self.emit(f"*{one}, {two} = {self.expr(LIST_X, 2)} + [{self.expr(X, 1)}, {self.expr(X, 1)}]")
            self.bind(one, LIST_X)
            self.bind(two, X)
        else:
            found = self.place("int")
            if not found:
                return self.assign(depth)
            self.emit(f"{found[0]}, {one} = {self.expr(PAIR, 2)}")
            self.bind(one, "int")

    def delete(self, depth):
        scope = self.scope
        found = [name for name in scope.top if name not in self.pinned and name in scope.names] if scope.depth == 0 else []
        if not found or self.chance(0.3):
            name = self.fresh()
            self.emit(f"{name} = {self.expr(self.pick((X, 'int', LIST_INT)), 1)}")
            if self.chance(0.5):
                self.let("int", f"len([{name}])")
            return self.emit(f"del {name}")
        name = self.pick(sorted(found))
        if scope.names[name] == X and len(self.named(X)) < 2:
            return self.assign(depth)
        del scope.names[name]
        scope.own.discard(name)
        scope.top.discard(name)
        self.emit(f"del {name}")

    def attribute(self, depth):
        """Writes an attribute in an unusual way, or uses a statement that a class offers."""
        objects = [(name, its[1]) for name, its in self.scope.names.items() if type(its) is tuple and its[0] == "obj"]
        if not objects:
            return self.assign(depth)
        name, cls = self.pick(objects)
        self.use(name)
        if cls.statements and self.chance(0.5):
            return self.write(self.fill(self.pick(cls.statements), 2, None, name))
        if cls.frozen or not cls.attributes:
            return self.assign(depth)
        attribute = self.pick(sorted(cls.attributes))
        kind = cls.attributes[attribute]
        forms = ("{0}.{1} = {2}", "setattr({0}, '{1}', {2})", "{3} = {2};del {0}.{1};{0}.{1} = {3}",
                 "{3} = {2};delattr({0}, '{1}');{0}.{1} = {3}", "object.__setattr__({0}, '{1}', {2})",
                 "{0}.{1} = {0}.{1}", "{3} = getattr({0}, '{1}');setattr({0}, '{1}', {3})")
        self.write(self.pick(forms).format(name, attribute, self.expr(kind, 2), self.fresh()))

    def expression(self, depth):
        found = [(name, its[1]) for name, its in self.scope.names.items() if type(its) is tuple and its[0] == "fn"
                 and its[1].cost * self.scope.multiplier < 150]
        if not found:
            return self.emit(self.expr(self.pick((X, "int", "str")), 2))
        name, function = self.pick(found)
        self.use(name)
        self.scope.cost += self.scope.multiplier * function.cost
        text = self.call(name, function, 2)
        if self.chance(0.5) or type(function.result) is tuple and function.result[0] == "any":
            return self.emit(text)
        self.let(function.result, text)

    def assertion(self, depth):
        self.emit(self.pick(("assert {}", "assert {}, 'on purpose'")).format(
            self.fill(self.pick(table("{i} == {i} or True\n({x}.dim() == 2)\n{b} or {i} + 1 != {i}\nlen({li}) >= 0")), 1)))

    def annotated(self, depth):
        self.let("int", self.expr("int", 2), ": int")

    def importing(self, depth):
        text, kind, use = self.pick((
            ("import math as {0}", "float", "{0}.fabs({f})"), ("from math import floor as {0}", "int", "{0}({i} / 2)"),
            ("import os.path as {0}", "str", "{0}.join('a', {s}.strip('/'))[:9]"),
            ("from operator import mul as {0}, add", "int", "{0}({i}, 2)"),
            ("import collections.abc as {0}", "bool", "isinstance({li}, {0}.Sequence)"),
            ("from functools import reduce as {0}", "int", "{0}(lambda a, b: a - b, {li})")))
        name = self.fresh("imported")
        self.emit(text.format(name))
        value = self.fill(table(use.replace("{0}", name))[0], 2)
        self.let(kind, value)

    def walrus(self, depth):
        name = self.fresh()
        form, kind = self.pick((("if ({0} := {1}) > 2:", "int"), ("if ({0} := {1}):", "int"), ("if not ({0} := {1}):", LIST_INT),
                                ("if ({0} := {1}).dim() == 2:", X), ("if ({0} := {1}) and {0}:", "str")))
        self.emit(form.format(name, self.expr(kind, 2)))
        self.bind(name, kind)
        self.inner(depth)

    def printing(self, depth):
        self.emit(self.fill(self.pick(table("""
            print({i})
            print({s}, {i}, sep="-")
            print(f"{{i}}", end="|")
            print({x}.shape, {b})
            print({li})
            print(*{ls})
            """)), 2))

    def jump(self, depth):
        """Leaves the loop or the function under a condition."""
        scope = self.scope
        condition = self.expr("bool", 2)
        choice = self.random()
        if scope.loops and choice < 0.75:
            leave = self.pick(("break", "continue", "break"))
        elif choice < 0.8 or scope.multiplier < 0:
            leave = self.returned()
        else:
            leave = f'raise {self.pick(self.errors)}("on purpose", {self.expr("int", 1)})'
            condition = f"{condition} and {self.expr('bool', 1)}" if self.chance(0.7) else condition
        if leave is None:
            return self.assign(depth)
        with self.inside(f"if {condition}:"):
            if self.chance(0.3):
                self.simple()
            self.emit(leave)

    def returned(self):
        """Returns the text of a return statement that suits the function."""
        result = self.scope.result
        if self.scope.kind == "none":
            return None
        if self.scope.generator:
            return "return"
        if result == ANY:
            return f"return {self.result_text(2)}"
        return f"return {self.expr(result, 2)}"

    def result_text(self, most):
        """Returns an expression of several variables, so that a call shows what became of them."""
        names = [name for name, its in self.scope.names.items() if type(its) is str or its[0] not in ("hidden", "genfn")]
        self.rng.shuffle(names)
        parts = [self.use(name) for name in names[:self.between(1, most)]]
        parts += [self.expr(self.pick((X, X, VECTOR, SCALAR, "int", "str", LIST_INT)), 2) for _ in range(self.between(0, 2))]
        form = self.random()
        if len(parts) == 1 and form < 0.6:
            return parts[0]
        if form < 0.1:
            return "[" + ", ".join(parts) + "]"
        if form < 0.2:
            return "{" + ", ".join([f"{index}: {part}" for index, part in enumerate(parts)]) + "}"
        return "(" + ", ".join(parts) + ",)"

    def simple(self):
        getattr(self, self.pick(SIMPLE))(0)

    def open_function(self, parameters, result, kind="function"):
        """Enters the scope of a new function: it reads the variables around it, and owns its parameters."""
        outer = self.scope
        scope = Scope(outer.names if outer else {}, result, kind)
        scope.names.update(parameters)
        scope.own |= set(parameters)
        scope.top |= set(parameters)
        self.scope = scope
        return outer


SIMPLE = ("assign",) * 14 + ("rebind",) * 5 + ("assign_place",) * 6 + ("augment",) * 8 + ("mutate",) * 10 + ("write_tensor",) * 9 + \
    ("several",) * 5 + ("delete",) * 3 + ("attribute",) * 5 + ("expression",) * 4 + ("assertion", "annotated", "importing", "printing") + ("feature",) * 3
