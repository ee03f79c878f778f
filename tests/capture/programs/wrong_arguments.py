"""Calls with arguments that do not fit: the texts of TypeErrors."""

import functools


def caught(function, *args, **kwargs):
    try:
        return function(*args, **kwargs)
    except TypeError as error:
        return str(error), error.args


def none():
    pass


def one(a):
    return a


def three(a, b, c):
    return a, b, c


def defaults(a, b=2, c=3):
    return a, b, c


def keywords(a, *, k, m=5, n):
    return a, k, m, n


def positional(a, b, /, c, d=4):
    return a, b, c, d


def rest(a, *args, k, **kwargs):
    return a, args, k, kwargs


class Plain:
    pass


class Made:
    def __init__(self, a, b=1):
        self.a = a

    def method(self, n):
        return n

    @classmethod
    def of_class(cls, n):
        return n

    @staticmethod
    def of_none(n):
        return n


@program(given((3,)))
def too_few(x):
    return x + 1, caught(one), caught(three), caught(three, 1), caught(three, 1, 2), caught(defaults), caught(three, b=1), caught(positional, 1)


@program(given((3,)))
def too_many(x):
    return (x + 1, caught(none, 1), caught(one, 1, 2), caught(defaults, 1, 2, 3, 4), caught(three, 1, 2, 3, 4), caught(keywords, 1, 2, k=1),
            caught(keywords, 1, 2, k=1, n=2), caught(keywords, 1, 2, 3))


@program(given((3,)))
def names(x):
    return (x + 1, caught(one, b=1), caught(one, 1, a=2), caught(positional, a=1, b=2, c=3), caught(positional, 1, b=2, c=3), caught(none, k=1),
            caught(defaults, 1, 2, b=3), caught(rest, 1, a=2, k=3))


@program(given((3,)))
def keyword_only(x):
    return x + 1, caught(keywords, 1), caught(keywords, 1, k=2), caught(keywords, k=1, n=2), caught(rest, 1), caught(rest), caught(rest, k=1)


@program(given((3,)))
def methods_and_classes(x):
    m = Made(1)
    return (x + 1, caught(Made), caught(Made, 1, 2, 3), caught(m.method), caught(m.method, 1, 2), caught(Made.method), caught(Made.of_class),
            caught(Made.of_none, 1, 2), caught(Plain, 1), caught(Plain, k=1), caught(Made, 1, c=2))


@program(given((3,)))
def closures_and_lambdas(x):
    def inner(a, b):
        return a

    class_less = lambda a: a
    part = functools.partial(three, 1, b=2)
    return x + 1, caught(inner, 1), caught(class_less), caught(part), caught(part, 5), caught(part, d=3), caught(functools.wraps(inner)(class_less), 1, 2)


@program(given((3,)))
def stars(x):
    args, more = (1, 2, 3, 4), {"a": 1, "z": 2}
    return x + 1, caught(three, *args), caught(three, **more), caught(one, *[], **{}), caught(none, *args[:1])


def generator(a):
    yield a


@program(given((3,)))
def generators(x):
    return x + 1, caught(generator), caught(generator, 1, 2), list(caught(generator, 5))


@program(given((3,)))
def context_and_traceback(x):
    try:
        try:
            raise ValueError("first")
        except ValueError:
            one()
    except TypeError as error:
        return x + 1, str(error), type(error.__context__).__name__, error.__cause__


@program(given((3,)))
def undefined_names(x):
    found = []
    for get in (lambda: no_such_name, lambda: also_missing(1)):
        try:
            get()
        except NameError as error:
            found.append((str(error), error.name))
    return x + 1, found


@program(given((3,)), raises="TypeError")
def not_caught(x):
    y = x + 1
    return three(y, 2)


def changing(a, b=3, *, k=1):
    return a, b, k


def change(defaults, keyword_defaults):
    def run():
        changing.__defaults__, changing.__kwdefaults__ = defaults, keyword_defaults

    return run


@program([given((3,))] * 5, between={1: change((7,), {"k": 1}), 2: change(None, {"k": 1}), 3: change((3,), None), 4: change((3,), {"k": 1})},
         setup=change((3,), {"k": 1}))
def defaults_that_change(x):
    return x + 1, caught(changing, 1)
