"""Constants, f-strings, strings and bytes."""

import collections
import typing

NAMES = ("alpha", "beta")


@program([given((3,), "a"), given((3,), "b"), given((3,), "a")])
def string_as_switch(x, mode):
    if mode == "a":
        return x + 1
    return x - 1


@program(given((3,), 5, "text"))
def f_strings(x, n, s):
    return x * n, f"{n}", f"{s!r} and {n:04d} {n + 1:>{n}}", f"{s!s:>8}|{s!a}", f"{n=}", f"plain", f"{3.14159:.2f}"


@program([given((3, 4)), given((2, 4)), given((2, 2))])
def f_string_of_shape(x):
    return x + 1, f"rows {x.shape[0]}, shape {tuple(x.shape)}, {x.dtype}"


@program(given((3,), "Hello World"))
def methods_of_strings(x, s):
    return (x + len(s), s.lower(), s.upper(), s.split(), s.replace("o", "0"), s.find("W"), s.startswith("He"), s.strip("Hd"),
            s.partition(" "), "-".join(["a", "b"]), s.count("l"), s.encode(), s.center(15, "*"), s.isalpha(), s.index("l"),
            s.title(), s.zfill(13), s.rsplit("o", 1), s.removeprefix("He"))


@program(given((3,), "abcdef"), graphs=0, breaks="it computes no tensor")
def strings_as_sequences(x, s):
    return x, s[0], s[-1], s[1:4], s[::-1], "c" in s, "z" not in s, s + "g", s * 2, len(s), list(s), sorted(s, reverse=True), s < "b"


@program(given((3,), 3, 1.5), graphs=0, breaks="it computes no tensor")
def formats_of_old(x, n, a):
    return x, "%d items, %s, %.1f%%" % (n, "x", a), "%5s|" % "ab", "{0} {name} {0}".format(n, name=a), "{:>{w}}".format(n, w=6)


@program(given((3,), b"\x01\x02abc"), graphs=None, breaks="bytearray is left to Python")
def bytes_and_bytearrays(x, b):
    array = bytearray(b)
    array[0] = 255
    array.extend(b"de")
    return x * b[1], b[1:], b + b"!", b.hex(), b.decode("latin-1"), bytes(array), list(b), b"abc" in b, bytes(3), array


@program(given((3,)))
def constants_of_all_kinds(x):
    return (x + 1, None, True, False, ..., 1, -1, 2 ** 100, 1.5, 2j, "s", b"b", (), (1, (2, "x")), frozenset({1, 2}), NotImplemented,
            1e400, -0.0)


@program(given((3,), "beta"))
def strings_as_keys(x, name):
    table = {"alpha": x + 1, "beta": x + 2}
    return table[name], name in NAMES, NAMES.index(name)


@program(given((3,), "no number"))
def conversion_fails(x, s):
    y = x + 1
    try:
        n = int(s)
    except ValueError as error:
        return y, str(error)
    return y + n


@program([given((3,), "12"), given((3,), "-7"), given((3,), "12")])
def conversions_of_text(x, s):
    return x + int(s), float(s), str(3.0), repr("a'b"), ord("a"), chr(98), hex(255), bin(5), oct(8), ascii("é"), str(None), bool(s)


@program(given((3,)))
def text_built_in_a_loop(x):
    text = ""
    for i in range(4):
        text += str(i)
        x = x + i
    return x, text


@program(given((2,), {"n": 3}), graphs=0, breaks="it computes no tensor")
def f_string_with_expressions(x, d):
    return x, f"{d['n'] * 2} {[i for i in range(3)]} {(lambda v: v + 1)(2)} {{}} {d!r:>12}"


@program(given((2,)))
def string_subclasses(x):
    made = Label("a") + "b"
    return x + 1, made, type(made), Label("c"), type(Label("c")), Label("x").twice()


class Label(str):
    def twice(self):
        return self * 2


@program(given((2,)), graphs=None, breaks="the text of a tensor needs its values")
def text_of_tensor(x):
    y = torch.ones(2)
    s = str(y)
    return y + x, s, f"{y.sum()}"


class Shown:
    def __init__(self, sizes):
        self.sizes = sizes

    def __repr__(self):
        return f"Shown\u2022{self.sizes}"

    def __format__(self, wanted):
        return f"<{wanted}>" if wanted else repr(self)


@program(given((2, 3), {"a": [1, None], "b": {2: "c"}}))
def fields_of_all_kinds(x, table):
    shown, sizes = Shown([1, 2]), (4, 5)
    return (x + 1, "got {} and {}".format(sizes, table), "{0!r:>20}|{0!s}|{1[a]}|{1[b][2]!a}".format(shown, table),
            "{s.sizes[1]:{width}}|{s:wide}|{{}}".format(s=shown, width=4), "{} {}".format(x.shape, [x.dim(), sizes]),
            f"{shown!a}|{shown!r:>14}|{shown!s:.3}|{shown:a}|{shown}", "{:>{}}|{!r:<8}".format("a", 3, "b"), "{}".format(Shown), "sizes {}, {n}".format(*sizes, n=[3]))


Point = collections.namedtuple("Point", "a b")


class Pair(typing.NamedTuple):
    first: int
    second: str = "s"


@program(given((2, 3)))
def texts_of_derived_containers(x):
    ordered, counted = collections.OrderedDict(a=x.shape), collections.defaultdict(list, b=[Pair(1)])
    each = [x.shape, Point(1, (2,)), Pair(3), ordered, counted, [x.size(), {"p": Pair(4, "t")}], (Point([1], None),)]
    return [x + 1] + [(f"{e}", f"{e!r}", f"{e!s:>60}", str(e), repr(e), "{} {!r}".format(e, e), "%s %r" % (e, e), ascii(e)) for e in each]


@program(given((2, 3)))
def parts_that_are_joined(x):
    return x + 1, "x".join(str(size) for size in x.shape), "-".join(map(str, x.shape * 2)), 2 * x.shape, x.shape * 0, type(x.shape * 2)


@program(given((2,)), graphs=None, breaks="the class of an element of a set would be lost")
def sets_of_derived_tuples(x):
    made = {x.shape, (2,)}
    made.add(Point(1, 2))
    more = {1}
    more.update([Point(3, 4)])
    return x + 1, made, [type(e).__name__ for e in made], (2,) in made, x.shape in made, more, {1}.union([x.shape])


@program(given((2,)), graphs=None, breaks="Python raises the error")
def fields_that_are_missing(x):
    made = [x + 1]
    for pattern in ("{} {}", "{0} {}", "{a}", "{0.nothing}", "{0[5]}", "{", "{0!z}", "{:{:{}}}"):
        try:
            made.append(pattern.format([1]))
        except Exception as error:
            made.append((type(error).__name__, str(error)))
    return made


@program(given((2,)))
def translation_tables(x):
    table = str.maketrans("ab", "xy")
    return x + 1, "aabb".translate(table), "a,b;c".replace(";", ",").split(","), " a ".strip().join("--")


@program(given((2,)), graphs=0, breaks="it computes no tensor")
def adjacent_and_raw_strings(x):
    return x, "a" "b" f"{1}" r"\n", """two
lines""", "tab\tend", "\N{BULLET}"
