"""Statements that contain statements: branches, loops, handlers, contexts, matches, functions within functions."""

import re

from random_base import (ANY, DICT_INT, DICT_NUMBERS, DICT_X, LIST_INT, LIST_STR, LIST_X, PAIR, VECTOR, X, Function, table)
from random_features import FEATURES
from random_statements import CAUGHT, ERRORS, Statements

# Headers of loops over things that end: the text, and the types of the loop's variables {@1}, {@2}, ...
LOOPS = [(table(text)[0], kinds) for text, kinds in (
    ("for {@1} in range({#}):", ("int",)), ("for {@1} in range({#}):", ("int",)), ("for {@1} in range(1, {#} + 2):", ("int",)),
    ("for {@1} in range(6, {#}, -2):", ("int",)), ("for {@1} in range({i} % 4):", ("int",)),
    ("for {@1} in {li}[:3]:", ("int",)), ("for {@1} in [{i}, {i}, {#}]:", ("int",)), ("for {@1} in ({i}, {#}):", ("int",)),
    ("for {@1} in reversed({li}[:3]):", ("int",)), ("for {@1} in sorted({li}[:4]):", ("int",)),
    ("for {@1}, {@2} in enumerate({li}[:3]):", ("int", "int")), ("for {@1}, {@2} in enumerate({ls}[:2], {#}):", ("int", "str")),
    ("for {@1}, {@2} in enumerate({lx}[:2]):", ("int", X)), ("for {@1}, {@2} in zip({li}, {lx}[:3]):", ("int", X)),
    ("for {@1}, {@2} in zip({s}[:3], {li}):", ("str", "int")), ("for {@1}, {@2}, {@3} in zip(range(3), {ls}, {li}):",
                                                              ("int", "str", "int")),
    ("for {@1}, ({@2}, {@3}) in enumerate(zip({li}[:2], {ls})):", ("int", "int", "str")),
    ("for {@1} in {lx}[:3]:", (X,)), ("for {@1} in ({x}, {x}):", (X,)), ("for {@1} in {x}:", (VECTOR,)),
    ("for {@1} in {x}.unbind(0):", (VECTOR,)), ("for {@1} in range({x}.shape[0]):", ("int",)),
    ("for {@1} in range({x}.size(1)):", ("int",)), ("for {@1}, {@2} in enumerate({x}):", ("int", VECTOR)),
    ("for {@1}, {@2} in zip({x}, {x}):", (VECTOR, VECTOR)), ("for {@1} in {x}.shape:", ("int",)),
    ("for {@1} in {s}[:3]:", ("str",)), ("for {@1} in {d}:", ("str",)), ("for {@1} in list({d}):", ("str",)),
    ("for {@1}, {@2} in {d}.items():", ("str", "int")), ("for {@1}, {@2} in list({dx}.items()):", ("str", X)),
    ("for {@1}, {@2} in {dx}.items():", ("str", X)), ("for {@1} in {dn}.keys():", ("int",)), ("for {@1} in list({d}.values()):", ("int",)),
    ("for {@1} in {dx}.values():", (X,)), ("for {@1} in sorted({si})[:4]:", ("int",)), ("for {@1} in list({qi}):", ("int",)),
    ("for {@1} in map(lambda {@3}: {@3} + 1, {li}[:3]):", ("int",)), ("for {@1} in filter(None, {li}[:3]):", ("int",)),
    ("for {@1} in iter({li}[:2]):", ("int",)), ("for {@1} in ({@3} * 2 for {@3} in {li}[:3]):", ("int",)),
    ("for {@1} in itertools.chain({li}[:2], ({#},)):", ("int",)), ("for {@1}, {@2} in itertools.product(range(2), {li}[:2]):",
                                                                 ("int", "int")),
    ("for {@1} in itertools.islice(itertools.count({#}), 3):", ("int",)), ("for {@1} in {y}[:3]:", ("int",)),
    ("for {@1}, {@2} in itertools.zip_longest({li}[:2], [{#}], fillvalue=0):", ("int", "int")),
    ("for {@1}, *{@2} in [(1, 2, 3), ({i}, {i})]:", ("int",)), ("for {@1}, {@2} in [{p}, {p}]:", ("int", "int")),
    ("for {@1} in (1, {s}, None, {x}):", (ANY,)), ("for {@1} in [{li}[:2], [{i}, {#}]]:", (LIST_INT,)),
    ("for {@1}, {@2} in {\"a\": {x}, \"k\": {x}}.items():", ("str", X)), ("for {@1} in {x}.tolist():", (ANY,)),
    ("for {@1} in torch.arange(3):", (("T", "i", ()),)), ("for {@1} in itertools.repeat({i}, 2):", ("int",)),
    ("for {@1} in range(int({data_int}) % 4):", ("int",)), ("for {@1} in dict({d}).items():", (("tuple", ("str", "int")),)),
)]
WHILES = table("""
    {@1} = 0;while {@1} < {#}:;{@1} += 1
    {@1} = 0;while {@1} < 4 and {b}:;{@1} += 1
    {@1} = {#};while {@1}:;{@1} -= 1
    {@1} = 0;while ({@1} := {@1} + 1) < {#}:
    {@1} = 0;while True:;{@1} += 1;if {@1} > {#}:;break
    {@1} = 0;while not {@1} > 2:;{@1} += 2
    {@1} = [{i}, {#}];while {@1}:;{@2} = {@1}.pop()
    {@1} = ({#}, ({i}, ({i}, None)));while {@1} is not None:;{@2}, {@1} = {@1}
    {@1}, {@2} = None, 0;while {@1} is None:;{@2} += 1;{@1} = {@2} if {@2} > 1 else None
    {@1} = iter({li}[:3]);while ({@2} := next({@1}, None)) is not None:
    {@1} = 0;while {@1} < {x}.shape[0]:;{@1} += 1
    {@1} = 0;while {@1} < 3 and {data_bool}:;{@1} += 1
    {@1} = 5;while {@1} > 0 or {b} and {@1} > -2:;{@1} -= 2
    {@1} = {c};{@2} = 0;while {@1} < 3 and {@2} < 3:;{@1} = {@1} + 1;{@2} += 1
""")
CONTEXTS = table("""
    3: with torch.no_grad():
    with torch.enable_grad():
    with contextlib.nullcontext({i}) as {@1}:
    with contextlib.suppress(ValueError, KeyError):
    with contextlib.suppress(Exception):
    with torch.no_grad(), contextlib.nullcontext():
    with (contextlib.nullcontext({x}) as {@1}, torch.no_grad()):
    with contextlib.ExitStack() as {@1}:;{@1}.callback(print, "left") if {i} == 4321 else None
    with torch.set_grad_enabled({b}):
""")
MATCHES = (
    ("{i}", ("case 0:", "case 1 | 2:", "case -1:", "case {@1} if {@1} > {#}:", "case int():", "case {@1}:", "case _:")),
    ("{any}", ("case None:", "case True:", "case int({@1}):", "case str() as {@1}:", "case [{@1}, *{@2}]:", "case {\"a\": {@1}}:",
               "case float() | bool():", "case torch.Tensor():", "case list():", "case []:", "case (1, {@1}):", "case _:")),
    ("{li}", ("case [{@1}]:", "case [1, *_]:", "case [{@1}, {@2}]:", "case [{@1}, *{@2}] if {@1} > {#}:", "case [_, _, {@1}]:",
              "case [*{@1}, 3]:", "case _:")),
    ("{d}", ("case {\"zz\": {@1}}:", "case {\"a\": 0 | 1}:", "case {\"a\": int({@1}), **{@2}}:", "case {}:")),
    ("({i}, {s})", ("case (0, \"a\"):", "case ({@1}, \"b\" | \"ab\"):", "case ({@1}, {@2}) if {b}:", "case (1, _):", "case _:")),
    ("{s}", ("case \"a\":", "case \"ab\" | \"\":", "case str({@1}) if len({@1}) > {#}:", "case {@1}:")),
    ("{x}.shape", ("case (1, {@1}):", "case ({@1}, 3):", "case ({@1}, {@2}) if {@1} == {@2}:", "case [_, _]:")),
    ("{f}", ("case 0.0:", "case 0.5 | 2.0:", "case math.pi:", "case float({@1}):", "case {@1}:")),
    ("{p}", ("case (0, 0):", "case (0, {@1}) | ({@1}, 0):", "case ({@1}, {@2}):")),
    ("{\"k\": {any}, \"n\": {i}}", ("case {\"k\": str({@1}), \"n\": 1}:", "case {\"k\": [{@1}, _], **{@2}}:", "case {\"n\": {@1}}:")),
)
MATCHES = [(table(subject)[0], [table(case)[0] for case in cases]) for subject, cases in MATCHES]
OPTIONAL_TESTS = ("if {} is None:", "if {} is not None:")


class Inner:
    """A block of statements in a function: variables that it binds are not known behind it."""

    def __init__(self, maker, header, times):
        self.maker, self.times = maker, times
        self.block = maker.block(header)

    def __enter__(self):
        self.block.__enter__()
        scope = self.maker.scope
        self.saved = (dict(scope.names), set(scope.own), scope.multiplier, scope.loops)
        scope.depth += 1
        if self.times > 1:
            scope.multiplier *= self.times
            scope.loops += 1

    def __exit__(self, *error):
        scope = self.maker.scope
        scope.names, scope.own, scope.multiplier, scope.loops = self.saved
        scope.depth -= 1
        self.block.__exit__(*error)


class Control(Statements):
    """Makes statements of all kinds."""

    def inside(self, header, times=1):
        return Inner(self, header, times)

    def statement(self, depth):
        self.budget -= 1
        if depth > 0 and self.budget > 0 and self.chance(0.45):
            getattr(self, self.pick(COMPOUND))(depth - 1)
        else:
            self.simple()

    def statements(self, depth):
        """Emits the statements of an inner block."""
        for _ in range(self.pick((1, 1, 2, 2, 3))):
            self.statement(depth)
        if self.chance(0.3 if self.scope.loops else 0.1):
            self.jump(depth)

    def inner(self, depth):
        """Emits an indented block below a header that is there already."""
        header = self.lines.pop().lstrip()
        with self.inside(header):
            self.statements(depth)

    def branch(self, depth):
        if self.scope.names and self.chance(0.12):
            optional = [name for name, its in self.scope.names.items() if type(its) is tuple and its[0] == "opt"]
            if optional:
                return self.optional_branch(self.use(self.pick(optional)), depth)
        with self.inside(f"if {self.expr('bool', 2)}:"):
            self.statements(depth)
        while self.chance(0.25):
            with self.inside(f"elif {self.expr('bool', 2)}:"):
                self.statements(depth)
        if self.chance(0.5):
            with self.inside("else:"):
                self.statements(depth)

    def optional_branch(self, name, depth):
        kind = self.scope.names[name][1]
        target = self.fresh()
        absent = self.chance(0.5)
        with self.inside(OPTIONAL_TESTS[0 if absent else 1].format(name)):
            self.emit(f"{target} = {self.expr(kind, 2) if absent else name}")
            if self.chance(0.5):
                self.statement(0)
        with self.inside("else:"):
            self.emit(f"{target} = {name if absent else self.expr(kind, 2)}")
        self.bind(target, kind)

    def ends(self, depth, loop):
        """Emits the else block of a loop, sometimes."""
        if self.chance(0.15):
            with self.inside("else:"):
                self.statements(0)

    def loop(self, depth):
        scope = self.scope
        if scope.multiplier > 12:
            return self.branch(depth)
        form, kinds = self.pick(LOOPS)
        text = self.fill(form, 1)
        names = self.names_of(form, text)
        hidden = {name: scope.names.pop(name) for name in self.iterated(form, text)}
        with self.inside(text, 4):
            for name, kind in zip(names, kinds):
                self.bind(name, kind)
            if "{lx}" not in text and self.chance(0.1) and self.place("int"):
                self.emit(f"{self.place('int')[0]} += 1")
            self.statements(depth)
        scope.names.update(hidden)
        self.ends(depth, True)

    def names_of(self, form, text):
        """Returns the names that a filled header binds, in their order."""
        target = text[4:text.index(" in ")]
        for character in "(),*":
            target = target.replace(character, " ")
        return target.split()

    def iterated(self, form, text):
        """Returns variables whose change of size would disturb the loop."""
        source = text[text.index(" in ") + 4:-1]
        base = source.split(".")[0].split("[")[0]
        its = self.scope.names.get(base)
        return [base] if type(its) is tuple and its[0] in ("dict", "set", "deque", "list") and "list(" not in source else []

    def loop_direct(self, depth):
        """Iterates a list that the body may change: new elements are seen, up to a limit."""
        scope = self.scope
        names = self.named(LIST_INT)
        if scope.multiplier > 4 or not names:
            return self.loop(depth)
        name = self.use(self.pick(names))
        variable = self.fresh()
        with self.inside(f"for {variable} in {name}:", 6):
            with self.block(f"if len({name}) > {self.between(4, 9)}:"):
                self.emit("break")
            self.bind(variable, "int")
            if self.chance(0.5):
                self.emit(f"{name}.append({self.expr('int', 1)})")
            self.statements(0)
        self.ends(depth, True)

    def loop_while(self, depth):
        scope = self.scope
        if scope.multiplier > 12:
            return self.branch(depth)
        text = self.fill(self.pick(WHILES), 1)
        before, separator, body = text.partition(";while ")
        self.write(before)
        header, _, first = body.partition(":;") if ":;" in body else (body[:-1], "", "")
        with self.inside(f"while {header}:", 4):
            if first:
                self.write(first)
            self.statements(depth)
        self.ends(depth, True)

    def fail(self):
        """Emits a statement that raises, sometimes under a condition."""
        text = self.fill(self.pick(ERRORS), 1)
        if self.chance(0.6):
            text = f"if {self.expr('bool', 2)}:;{text}"
        before = len(self.lines)
        self.write(text)
        self.intended.update(range(before + 1, len(self.lines) + 1))

    def attempt(self, depth):
        with self.inside("try:"):
            if self.chance(0.5):
                self.statement(0)
            if self.chance(0.75):
                self.fail()
            self.statements(depth)
        choice = self.random()
        if choice < 0.12:
            return self.final(depth)
        name = self.fresh("e")
        several = self.chance(0.25)
        if several:
            with self.inside(f"except {self.pick(CAUGHT[2:])}:"):
                self.statements(0)
        last = self.pick((*CAUGHT, *self.errors)) if self.chance(0.3) else "Exception"
        with self.inside(self.pick((f"except {last} as {name}:", f"except {last} as {name}:", f"except {last}:", "except:"))
                         if choice < 0.95 else f"except {last} as {name}:"):
            if f" as {name}:" in self.lines[-1]:
                self.bind(name, ("hidden",))
                self.handle(name)
            if self.chance(0.7):
                self.statements(0)
            if self.chance(0.06):
                self.emit(self.pick(("raise", "raise", f"raise {self.pick(self.errors)}('on purpose')")))
        if self.chance(0.2):
            with self.inside("else:"):
                self.statements(0)
        if self.chance(0.25):
            self.final(depth)

    def handle(self, name):
        result = self.fresh()
        use, kind = self.pick((("type({}).__name__", "str"), ("str({})[:20]", "str"), ("len({}.args)", "int"), ("{}.args", None),
                               ("isinstance({}, LookupError)", "bool"), ("repr({})[:15]", "str"), ("{}.__cause__ is None", "bool"),
                               ("{}.__traceback__ is not None", "bool"), ("{}.__context__ is None", "bool")))
        place = self.place(kind) if kind and self.chance(0.5) else None
        self.emit(f"{place[0] if place else result} = {use.format(name)}")
        if not place and kind:
            self.bind(result, kind)

    def final(self, depth):
        with self.inside("finally:"):
            self.statements(0)
            if self.chance(0.05):
                self.jump(0)

    def context(self, depth):
        managers = [cls for cls in self.contexts]
        if managers and self.chance(0.6):
            text = self.pick(managers)
            text = f"with {self.fill(text, 1)}"
            variable = self.fresh()
            text += self.pick((":", f" as {variable}:"))
        else:
            text = self.fill(self.pick(CONTEXTS), 1)
        header, _, first = text.partition(";")
        with self.inside(header):
            if first:
                self.emit(first)
            if self.chance(0.2):
                self.fail()
            self.statements(depth)

    def match(self, depth):
        subject, cases = self.pick(MATCHES)
        subject_text = self.fill(subject, 1)
        self.emit(f"match {subject_text}:")
        self.indent += 1
        chosen = [case for case in cases if self.chance(0.6)] or cases[:1]
        for case in chosen:
            text = self.fill(case, 1)
            with self.inside(text):
                for name in re.findall(r"\bw\d+\b", text.split(" if ")[0]):
                    self.bind(name, ANY)
                self.statements(0)
            if text == "case _:" or case[0] == "case " and case[-1] == ":" and len(case) == 3:
                break  # everything matches
        self.indent -= 1

    def feature(self, depth):
        """Emits a small group of statements with a construct that is rare."""
        form, _, kind = self.pick(FEATURES)
        if self.scope.multiplier > 16:
            return self.simple()
        result = self.fresh()
        lines = self.fill(form, 2, None, result).split("\n")
        for line in lines:
            self.emit(line)
        if kind:
            self.bind(result, kind)

    def define(self, depth):
        """Defines a function within the function, which reads and writes variables around it."""
        if self.scope.kind == "none":
            return self.simple()
        name = self.fresh("inner")
        result = self.pick((X, X, "int", VECTOR, "str", LIST_INT, "float"))
        written = [other for other in self.writable() if other not in self.globals_written]
        written = [other for other in written if type(self.scope.names[other]) is str or self.scope.names[other][0] in
                   ("T", "list", "dict")]
        self.rng.shuffle(written)
        self.make_function(name, result, self.between(1, 3), written[:self.pick((0, 0, 1, 1, 2))])
        if self.chance(0.6):
            self.scope.cost += self.scope.multiplier * self.scope.names[name][1].cost
            self.let(result, self.call(name, self.scope.names[name][1], 2))

    def parameters(self, sized):
        """Returns the text of random parameters, their types, and a Function's arguments and extras."""
        texts, types, arguments, extra = [], {}, [], []
        if sized:
            name = self.fresh("p")
            texts.append(name)
            types[name] = X
            arguments.append(X)
        for _ in range(self.pick((0, 1, 1, 2))):
            name = self.fresh("p")
            kind = self.pick(("int", "int", "float", "str", "bool", LIST_INT, DICT_INT, PAIR, LIST_STR, DICT_NUMBERS) +
                             ((X, VECTOR, LIST_X, DICT_X) if sized else ()))
            texts.append(name)
            types[name] = kind
            arguments.append(kind)
        if texts and self.chance(0.08):
            texts.append("/")
        choice = self.random()
        name = self.fresh("p")
        if choice < 0.2:
            texts.append(f"{name}={self.expr('int', 0)}")
            types[name] = "int"
            extra.append("{i}")
        elif choice < 0.3:
            texts.append(f"{name}=[1, 2]")  # shared by all calls
            types[name] = LIST_INT
            extra.append("{li}")
        elif choice < 0.42:
            texts.append(f"*{name}")
            types[name] = ("hidden",)
            extra.append("{i}, {s}")
        if self.chance(0.2):
            name = self.fresh("p")
            if choice >= 0.42 or choice < 0.3:
                texts.append("*")
            texts.append(f"{name}={self.expr('int', 0)}")
            types[name] = "int"
            extra.append(name + "={i}")
        if self.chance(0.12):
            name = self.fresh("p")
            texts.append(f"**{name}")
            types[name] = ("hidden",)
            extra.append(self.fresh("k") + "={s}")
        return texts, types, arguments, [table(part)[0] for part in extra]

    def make_function(self, name, result, budget, written=(), first=(), decorator=None, depth=1, sized=None):
        """Emits a function and makes its name known. `first` are (name, type) of leading parameters that no caller gives."""
        needs = type(result) is tuple
        texts, types, arguments, extra = self.parameters(self.chance(0.6) or needs if sized is None else sized)
        types.update(first)
        if decorator:
            self.emit(f"@{decorator}")
        header = f"def {name}({', '.join([own for own, _ in first] + texts)}):"
        outer = self.open_function(types, result)
        outer_budget, self.budget = self.budget, budget + 1
        with self.block(header):
            self.declare(written, outer)
            hidden = [own for own, its in types.items() if its == ("hidden",)]
            for own in hidden:
                if self.chance(0.7):
                    self.let("int", f"len({own})")
            for _ in range(budget):
                self.statement(depth)
            self.emit(f"return {self.expr(result, 2)}")
        cost = self.scope.cost + budget + 1
        self.scope, self.budget = outer, outer_budget
        function = Function(arguments, result, cost, extra)
        if not first:
            self.scope.names[name] = ("fn", function)
            if self.scope.kind != "module":
                self.bind(name, ("fn", function))
        return function

    def declare(self, written, outer):
        """Emits `nonlocal` and `global` for the names that the function may write."""
        if written:
            self.emit("nonlocal " + ", ".join(written))
            for own in written:
                self.pinned.add(own)
                self.scope.own.add(own)
        chosen = [own for own in self.globals_written if self.chance(0.25)]
        if chosen:
            self.emit("global " + ", ".join(chosen))
            self.scope.own.update(chosen)
            self.pinned.update(chosen)

    def assign_lambda(self, depth):
        name = self.fresh("inner")
        arguments = [self.pick((X, "int", "str", LIST_INT)) for _ in range(self.between(0, 2))]
        function = Function(arguments, self.pick((X, "int", "str")), 2)
        self.emit(f"{name} = {self.function_value(('fn', function), 3)}")
        self.bind(name, ("fn", function))


COMPOUND = ("branch",) * 10 + ("loop",) * 9 + ("loop_direct",) + ("loop_while",) * 3 + ("attempt",) * 7 + ("context",) * 4 + \
    ("match",) * 3 + ("define",) * 5 + ("assign_lambda",) * 2 + ("feature",) * 11 + ("walrus",) * 3
