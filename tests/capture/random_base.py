"""The base of the generator of random functions: choices, types, scopes and lines of source.

Types are strings ("int", "float", "bool", "str", "bytes") or tuples: ("T", "f" | "i" | "b", shape) is a tensor whose shape
is made of the names "n" and "m" and of numbers, ("list", t) has at least two elements, ("dict", key, t) has the keys of
KEYS[key], ("set", t), ("deque", t) has two elements, ("tuple", types), ("obj", class), ("fn", function), ("opt", t) is t
or None, ("any",) can be everything.
"""

import ast
import random
import re

NM = ("n", "m")
X = ("T", "f", NM)          # the tensor that every entry function has
VECTOR = ("T", "f", ("m",))
COLUMN = ("T", "f", ("n",))
SCALAR = ("T", "f", ())
ONE = ("T", "f", (1,))
WHOLE = ("T", "i", NM)
TRUTH = ("T", "b", NM)
LIST_INT, LIST_FLOAT, LIST_STR, LIST_X = ("list", "int"), ("list", "float"), ("list", "str"), ("list", X)
DICT_INT, DICT_FLOAT, DICT_X, DICT_NUMBERS = ("dict", "str", "int"), ("dict", "str", "float"), ("dict", "str", X), \
    ("dict", "int", "int")
DICT_LIST = ("dict", "str", LIST_INT)
SET_INT, SET_STR, DEQUE_INT, DEQUE_X = ("set", "int"), ("set", "str"), ("deque", "int"), ("deque", X)
PAIR = ("tuple", ("int", "int"))
ANY = ("any",)
KEYS = {"str": ('"a"', '"b"', '"c"'), "int": ("0", "1", "2")}
OTHER_KEYS = {"str": ('"d"', '"e"', '"zz"'), "int": ("3", "4", "-1")}

# Holes of templates that have a type.
HOLES = {
    "i": "int", "f": "float", "b": "bool", "s": "str", "y": "bytes", "li": LIST_INT, "lf": LIST_FLOAT, "ls": LIST_STR,
    "lx": LIST_X, "d": DICT_INT, "df": DICT_FLOAT, "dx": DICT_X, "dn": DICT_NUMBERS, "dl": DICT_LIST, "si": SET_INT,
    "ss": SET_STR, "qi": DEQUE_INT, "qx": DEQUE_X, "p": PAIR, "x": X, "v": VECTOR, "col": COLUMN, "c": SCALAR, "one": ONE,
    "k": WHOLE, "t": TRUTH,
}
HOLE = re.compile(r"\{([a-z@#=~][a-z_]*[0-9]*)\}")


def parsed(template):
    """Returns the template as a list of texts and holes in turn."""
    return HOLE.split(template)


def table(text):
    """Returns parsed templates, one a line; "3: " before one gives it a weight."""
    found = []
    for line in text.strip().splitlines():
        weight, separator, template = line.strip().partition(": ")
        if not separator or not weight.isdigit():
            weight, template = "1", line.strip()
        found += [parsed(template)] * int(weight)
    return found


def expressions(text):
    """Returns a table of expressions, with parentheses around those that an operator beside them could split."""
    found = []
    for parts in table(text):
        template = "".join(part if position % 2 == 0 else "{" + part + "}" for position, part in enumerate(parts))
        tree = ast.parse(HOLE.sub("hole", template), mode="eval").body
        if isinstance(tree, (ast.BinOp, ast.BoolOp, ast.UnaryOp, ast.Compare, ast.IfExp, ast.Lambda)) and tree.col_offset == 0:
            parts = parsed(f"({template})")
        found.append(parts)
    return found


class Function:
    """Something that can be called: its name or text, the types of its arguments, of its result, and how long it runs."""

    def __init__(self, arguments, result, cost=1, extra=()):
        self.arguments = arguments
        self.result = result
        self.cost = cost
        self.extra = extra  # texts that may follow the arguments


class UserClass:
    """A class of the program: attributes, and templates of expressions on an object, by the type of their value."""

    def __init__(self, name, base=None):
        self.name = name
        self.base = base
        self.attributes = dict(base.attributes) if base else {}
        self.uses = {kind: list(found) for kind, found in base.uses.items()} if base else {}
        self.statements = list(base.statements) if base else []
        self.frozen = False
        self.construct = base.construct if base else None  # the types of the constructor's arguments
        self.cost = base.cost if base else 1

    def offer(self, kind, template):
        self.uses.setdefault(kind, []).append(parsed(template))


class Scope:
    """The variables that can be read at a place, and what surrounds it."""

    def __init__(self, names, result=ANY, kind="function"):
        self.names = dict(names)    # to types
        self.own = set()            # may be written
        self.top = set()            # bound in the outermost block, so they may be deleted or get another type
        self.result = result
        self.kind = kind
        self.depth = 0              # of blocks
        self.loops = 0
        self.multiplier = 1         # how often the current block runs
        self.cost = 0
        self.generator = False


class Base:
    """Random choices, names and lines."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.random = self.rng.random
        self.lines = []
        self.indent = 0
        self.count = 0
        self.pinned = set()
        self.intended = set()  # numbers of lines that raise on purpose
        self.scope = None
        self.classes = []
        self.budget = 0

    def pick(self, options):
        return options[int(self.random() * len(options))]

    def chance(self, probability):
        return self.random() < probability

    def between(self, low, high):
        return low + int(self.random() * (high - low + 1))

    def fresh(self, prefix="v"):
        self.count += 1
        return f"{prefix}{self.count}"

    def emit(self, line):
        self.lines.append("    " * self.indent + line)

    def block(self, header):
        """Begins a block of lines: `with self.block("if x:"): ...`"""
        self.emit(header)
        return Indented(self)

    def bind(self, name, kind):
        """Makes a local variable known."""
        scope = self.scope
        scope.names[name] = kind
        scope.own.add(name)
        if scope.depth == 0:
            scope.top.add(name)
        return name

    def let(self, kind, text, annotation=""):
        """Assigns the expression to a new variable."""
        self.emit(f"{self.bind(self.fresh(), kind)}{annotation} = {text}")

    def use(self, name):
        """Notes that a name is read: what an inner function reads keeps its type."""
        if name not in self.scope.own:
            self.pinned.add(name)
        return name

    def named(self, kind):
        """Returns the names of variables of this type."""
        return [name for name, its in self.scope.names.items() if its == kind]

    def writable(self, kind=None):
        own = self.scope.own
        return [name for name, its in self.scope.names.items() if name in own and (kind is None or its == kind)]

    def without_quotes(self, kind):
        """Returns an expression that can stand in an f-string of Python 3.11."""
        names = self.named(kind)
        return self.use(self.pick(names)) if names else {"int": "7", "float": "2.5", "str": "'fs'"}.get(kind, "GX")

    def fill(self, template, depth, kind=None, target=None):
        """Returns the template's text with expressions in its holes. Holes {@}, {@1} are new names, {#} is a small number,
        {=} has the type `kind`, {~} can be broadcast to it, {o} is `target`; holes with a digit, {x1}, are the same
        expression each time."""
        parts, memo = [], {}
        formatted = 'f"' in template[0]
        for position, part in enumerate(template):
            if position % 2 == 0:
                parts.append(part)
                continue
            if part in memo:
                parts.append(memo[part])
                continue
            name = part.rstrip("0123456789")
            if name == "@":
                text = memo[part] = self.fresh("w")
            elif name == "#":
                text = str(self.between(1, 4))
            elif name == "=":
                text = self.expr(kind, depth - 1)
            elif name == "~":
                text = self.expr(self.broadcastable(kind), depth - 1)
            elif name == "o":
                text = target
            else:
                special = self.special_holes.get(name)
                text = special(self, kind, depth) if special else self.expr(HOLES[name], depth - 1)
            if formatted and ('"' in text or "\\" in text or text[0] == "{"):
                text = self.without_quotes(HOLES.get(name))
            if part != name:
                memo[part] = text
            parts.append(text)
        return "".join(parts)


class Indented:
    def __init__(self, maker):
        self.maker = maker

    def __enter__(self):
        self.maker.indent += 1
        self.first = len(self.maker.lines)

    def __exit__(self, *error):
        if error[0] is None and len(self.maker.lines) == self.first:
            self.maker.emit("pass")
        self.maker.indent -= 1
