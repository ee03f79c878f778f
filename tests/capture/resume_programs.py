"""Writes random small functions: control flow, handlers, closures, deletions."""


class Writer:
    def __init__(self, chance):
        self.chance, self.lines, self.depth, self.loops, self.count = chance, [], 0, 0, 0
        self.names = ["a", "b", "c", "d"]

    def line(self, text):
        self.lines.append("    " * (self.depth + 1) + text)

    def name(self):
        return self.chance.choice(self.names)

    def rarely(self, one, other):
        return one if self.chance.random() < 0.2 else other

    def number(self, level=0):
        """An expression."""
        pick = self.chance.randrange(12 if level < 2 else 3)
        n = lambda: self.number(level + 1)  # noqa: E731
        if pick == 0:
            return str(self.chance.randrange(5))
        if pick < 3:
            return self.name()
        forms = [lambda: f"({n()} + {n()})", lambda: f"({n()} * {n()})", lambda: f"({n()} // ({n()}{self.rarely('', ' or 1')}))",
                 lambda: f"({n()} if {n()} else {n()})", lambda: f"({n()} and {n()} or {n()})",
                 lambda: f"({n()} < {n()} < {n()})", lambda: f"len([{n()}, *range({n()} % 4)])",
                 lambda: f"sum(x + {n()} for x in range({n()} % 3))", lambda: f"max({n()}, {n()}, key=lambda x: -x)",
                 lambda: f"sum([x * {n()} for x in ({n()}, {n()})])",
                 lambda: f"len(f'{{{self.name()}}}-{{{self.name()}!r:>4}}')",
                 lambda: f"len(str({n()}).strip())", lambda: f"get({n()})"]
        return self.chance.choice(forms)()

    def block(self, size=3):
        self.depth += 1
        for _ in range(self.chance.randint(1, size)):
            self.statement()
        self.depth -= 1

    def statement(self):
        simple = [self.assign, self.assign, self.assign, self.log, self.log, self.delete, self.unpack, self.leave,
                  self.handled]
        nested = [self.branch, self.loop, self.loop, self.attempt, self.attempt, self.manage, self.choose]
        self.chance.choice(simple if self.depth > 3 else simple + nested)()

    def assign(self):
        operator, name = self.chance.choice(["=", "=", "+=", "-=", "*="]), self.name()
        # Numbers stay small, however long a loop runs.
        self.line(f"{name} {operator} {self.number()} % 97")
        if operator != "=":
            self.line(f"{name} %= 97")

    def log(self):
        self.line(f"log.append(({self.number()}, {self.number()}))")

    def handled(self):
        self.line("log.append(handled())")

    def delete(self):
        if self.chance.random() < 0.3:
            name = self.name()
            self.line(f"del {name}")
            if self.chance.random() < 0.9:
                self.line(f"{name} = {self.number()}")
        else:
            self.line(f"log[{self.number()}:] = []")

    def unpack(self):
        self.line(f"{self.name()}, *rest = [{self.number()} % 97, {self.number()}]")

    def leave(self):
        kinds = ["return log, {}", "raise ValueError({})", "raise KeyError({}) from None", "raise", "assert {}, 'no'"]
        if self.loops:
            kinds += ["break", "continue"] * 3
        if self.chance.random() < 0.4:
            self.line(f"if {self.number()} == {self.chance.randrange(3)}:")
            self.line("    " + self.chance.choice(kinds).format(self.number()))
        else:
            self.log()

    def branch(self):
        self.line(f"if {self.number()}:")
        self.block()
        if self.chance.random() < 0.5:
            self.line("else:")
            self.block()

    def loop(self):
        self.count += 1
        if self.chance.random() < 0.6:
            self.line(f"for {self.name()} in range(1 + {self.number()} % 3):")
        else:
            self.line(f"fuel{self.count} = 4")
            self.line(f"while fuel{self.count} > 0 and {self.number()}:")
            self.line(f"    fuel{self.count} -= 1")
        self.loops += 1
        self.block()
        self.loops -= 1
        if self.chance.random() < 0.2:
            self.line("else:")
            self.block()

    def attempt(self):
        self.line("try:")
        self.block()
        if self.chance.random() < 0.6:
            fails = ["raise ValueError({})", "log.append(1 // 0)", "del unknown", "len({})", "raise KeyError({})"]
            self.line(f"    if {self.number()}: " + self.chance.choice(fails).format(self.number()))
        kind = self.chance.randrange(4)
        if kind < 3:
            caught = self.chance.choice(["ValueError", "(TypeError, ZeroDivisionError)", "Exception", "NameError"])
            self.line(f"except {caught}" + self.chance.choice([":", " as error:", f" as {self.name()}:"]))
            self.block()
            if self.chance.random() < 0.3:
                self.line("else:")
                self.block()
        if kind >= 2:
            self.line("finally:")
            self.block()

    def manage(self):
        self.line(f"with Manager(log, {self.number()}) as {self.chance.choice(['m', 'rest'])}:")
        self.block()
        if self.chance.random() < 0.5:
            self.line(f"    if {self.number()}: raise ValueError({self.number()})")

    def choose(self):
        self.line(f"match [{self.number()}, {self.number()} % 97]:")
        self.line(f"    case [0 | 1, {self.name()}]:")
        self.depth += 1
        self.block()
        self.line("case [x, *rest] if x:")
        self.block()
        self.depth -= 1

    def function(self):
        self.lines = ["def f(a, b):", "    log = []"]
        self.line("c = 1")
        if self.chance.random() < 0.96:
            self.line("d = 2")
        shared = sorted(self.chance.sample(self.names, self.chance.randrange(3)))
        self.line("def get(x):")
        if shared:
            self.line(f"    nonlocal {', '.join(shared)}")
            self.line(f"    {self.chance.choice(shared)} = x % 97")
            self.line(f"    log.append({self.chance.choice(shared)})")
        self.line("    return x + 1")
        if "d" in shared:
            self.line("d = 3")
        for _ in range(self.chance.randint(3, 7)):
            self.statement()
        self.line("return log, a, b, c")
        return "\n".join(self.lines) + "\n"


def write(chance):
    """Returns the source of a function f(a, b)."""
    return Writer(chance).function()
