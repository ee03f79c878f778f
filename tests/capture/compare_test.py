"""The comparison of programs can fail: it notices differences, and compilers that are wrong on purpose."""

import collections
import enum
import functools
import importlib.util
import math
import os
import sys
import tempfile
import time
import unittest
import warnings

import compare
import program_runner as runner
import wrong_compilers

if importlib.util.find_spec("torch") is None:
    print("skipped: needs Debian's python3-torch")
    sys.exit()

WORLD = runner.World("torch")
torch = WORLD.torch


def facts(value):
    describer = compare.Describer(torch.Tensor)
    describer.describe("", value)
    return describer.facts


def difference(a, b, tolerance=0.0):
    return compare.first_difference(facts(a), facts(b), tolerance)


class Item:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


class Other(Item):
    pass


class Slots:
    __slots__ = ("a",)


class Colour(enum.Enum):
    RED = 1
    GREEN = 2


for own in (Item, Other, Slots, Colour):
    own.__module__ = "programs.test"

ONE = torch.ones(3)
SHARED = [1]


def slots(a):
    made = Slots()
    made.a = a
    return made


def closure(n):
    def inner():
        return n

    return inner


def with_attribute(function, n):
    function.n = n
    return function


def error(cause=None, context=None):
    made = ValueError("v")
    made.__cause__, made.__context__ = cause, context
    return made


def leaf(gradient=None):
    made = torch.ones(3, requires_grad=True)
    made.grad = gradient
    return made


def advanced(iterator):
    next(iterator)
    return iterator


class DifferenceTest(unittest.TestCase):
    def test_different_values_are_noticed(self):
        first, second = [1], [1]
        pairs = [
            (1, 2), (1, True), (1, 1.0), (0.0, -0.0), (1.0, math.nan), (math.inf, -math.inf), (1j, 1j + 1), (complex(0.0, -0.0), 0j),
            ("a", "b"), ("a", b"a"), (None, 0), (None, False), (..., None), ([1], (1,)), ([1], [1, 2]), ([1, 2], [1]), ([], ()),
            ([1, 2], [2, 1]), ({1}, {2}), ({1}, frozenset({1})), ({1}, {1.0}), ({"a": 1}, {"a": 2}), ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
            ({1: 1}, {1.0: 1}), ({1: 1}, {True: 1}), (collections.OrderedDict(a=1), {"a": 1}),
            (collections.defaultdict(list), collections.defaultdict(int)), (collections.deque([1]), collections.deque([1], 5)),
            (collections.deque([1]), collections.deque([2])), (range(3), range(4)), (range(3), [0, 1, 2]), (slice(1), slice(2)),
            (ONE, torch.ones(4)), (ONE, ONE.double()), (ONE, torch.ones(3, 1)), (ONE, ONE * 2), (ONE, ONE + 1e-6), (ONE, 1.0),
            (ONE * 0, ONE * -0.0), (ONE, ONE * math.nan), (torch.ones(2, 3), torch.ones(3, 2).t()), (torch.ones(3), leaf()),
            (leaf(), leaf(ONE)), (leaf(ONE), leaf(ONE * 2)), (leaf(), leaf() * 1),
            (torch.tensor(True), torch.tensor(1)), ([ONE, ONE], [ONE, ONE.clone()]), ([ONE, ONE.view(3)], [ONE, ONE.clone()]),
            ([ONE, ONE.view(3)], [ONE, ONE]), ((lambda t: [t[:2], t[2:]])(torch.ones(4)), [torch.ones(2), torch.ones(2)]),
            ((lambda t: [t[:2], t[2:]])(torch.ones(4)), (lambda t: [t[:2], t[1:3]])(torch.ones(4))),
            ([first, first], [first, second]), ([first, second], [first, first]), ({"a": first, "b": first}, {"a": first, "b": [1]}),
            (Item(a=1), Item(a=2)), (Item(a=1), Item()), (Item(), Item(a=1)), (Item(a=1), Item(b=1)), (Item(), Other()),
            (slots(1), slots(2)), (slots(1), Slots()), (Colour.RED, Colour.GREEN), (int, float), (Item, Other), (len, max), (math, os),
            (closure(1), closure(2)), (closure(1), closure([1])), (closure(1), lambda: 1), (with_attribute(closure(1), 1), closure(1)),
            (functools.partial(max, 1), functools.partial(max, 2)), (functools.partial(max), functools.partial(min)),
            (ValueError("a"), ValueError("b")), (ValueError("a"), KeyError("a")), (error(), error(cause=KeyError())),
            (error(), error(context=KeyError())), (ExceptionGroup("g", [KeyError(1)]), ExceptionGroup("g", [KeyError(2)])),
            (iter([1, 2]), advanced(iter([1, 2]))), (iter([1]), iter((1,))), (zip([1], [2]), zip([1], [3])), (reversed([1, 2]), iter([1, 2])),
            ([].append, [].extend), ([1].append, [2].append), (torch.float32, torch.float64), (bytearray(b"a"), bytearray(b"b")),
            ((i for i in [1]), advanced(i for i in [1])), ((1, [2]), (1, [3])), (((1, 2), 3), ((1, 2.0), 3)),
        ]
        for a, b in pairs:
            with self.subTest(a=a, b=b):
                self.assertIsNotNone(difference(a, b))

    def test_equal_values_agree(self):
        def cycle():
            items = [1]
            items.append(items)
            return items

        makers = [
            lambda: 1, lambda: math.nan, lambda: complex(math.nan, 1), lambda: [1, (2, "a")], lambda: {"a": [ONE.clone()]}, lambda: ONE * math.nan,
            lambda: {"b", "a", "c"}, lambda: {1, 2.5, None, "x"}, cycle, lambda: Item(a=[1], b=Item()), lambda: slots([1]), lambda: closure([1]),
            lambda: error(KeyError("k")), lambda: leaf(ONE.clone()), lambda: iter([1, 2]), lambda: functools.partial(max, 1), lambda: torch.ones(0),
            lambda: {Item(a=1), Item(a=2)}, lambda: torch.ones(3)[1:], lambda: Item, lambda: (i for i in [1]), lambda: {1: {2: {3}}},
        ]
        for make in makers:
            with self.subTest(value=make()):
                self.assertIsNone(difference(make(), make()))

    def test_descriptions_do_not_change_later(self):
        tensor, items = torch.ones(3), [1]
        before = facts([tensor, items])
        tensor.add_(1)
        items.append(2)
        self.assertIsNone(compare.first_difference(before, facts([torch.ones(3), [1]])))

    def test_iterators_are_left_as_they_are(self):
        values = [iter([1, 2]), zip([1, 2], [3, 4]), enumerate("ab"), reversed([1, 2]), map(str, [1, 2])]
        facts(values)
        self.assertEqual([len(list(value)) for value in values], [2] * 5)

    def test_tolerance(self):
        self.assertIsNone(difference(ONE, ONE + 1e-6, 1e-5))
        self.assertIsNotNone(difference(ONE, ONE + 1e-3, 1e-5))
        self.assertIsNone(difference(1.0, 1.0 + 1e-9, 1e-5))
        self.assertIsNotNone(difference(1, 2, 10.0))
        self.assertIsNotNone(difference(math.nan, 1.0, 10.0))
        self.assertIsNotNone(difference(ONE, ONE.double(), 1e-5))

    def test_the_path_is_told(self):
        self.assertEqual(difference({"a": [1, 2]}, {"a": [1, 3]}), "['a'][1]: expected ('int', 2), found ('int', 3)")


class WrongCompilersTest(unittest.TestCase):
    """Each wrong compiler is found by many programs of some features."""

    # Compiler -> feature -> number of programs that notice at least.
    EXPECTED = {
        "dtype_of_results": {"arithmetic": 22, "matching": 10},
        "results_are_copies": {"tensors": 18, "lists": 9},
        "results_are_detached": {"training": 18, "contexts": 7},
        "results_require_gradients": {"control": 25},
        "strides_of_results": {"tensors": 25},
        "last_bit_of_results": {"control": 25},
        "zeros_lose_their_sign": {"arithmetic": 4},
        "booleans_are_numbers": {"classes": 14},
        "tuples_are_lists": {"classes": 24},
        "lists_are_copied": {"lists": 10},
        "order_of_keys": {"dicts": 8},
        "results_are_stale": {"changes": 35, "dicts": 25},
        "writes_to_arguments_are_lost": {"lists": 22, "tensors": 22, "dicts": 16, "classes": 15},
        "exceptions_are_swallowed": {"exceptions": 9},
        "texts_of_exceptions": {"exceptions": 9},
        "types_of_exceptions": {"exceptions": 9},
        "contexts_of_exceptions_are_lost": {"exceptions": 4},
        "output_is_lost": {"library": 4, "contexts": 3, "exceptions": 3},
        "random_numbers_are_burned": {"control": 25},
        "random_numbers_of_python_are_burned": {"control": 25},
        "randomness_is_kept": {"training": 5},
        "writes_to_globals_are_lost": {"control": 1, "functions": 1},
        "changes_of_global_containers_are_lost": {"lists": 3, "dicts": 2, "collections_and_data": 2, "contexts": 9},
        "effects_happen_twice": {"lists": 18, "dicts": 10, "contexts": 9},
        "gradient_mode_is_lost": {"training": 19, "contexts": 7},
        "gradient_mode_is_left_off": {"control": 25},
        "attributes_are_lost": {"classes": 11},
        "cells_are_stale": {"functions": 3, "lists": 1},
        "arguments_count_as_written": {"tensors": 30},
        "appended_items_are_lost": {"lists": 7},
        "values_of_first_arguments": {"control": 7, "arithmetic": 6},
    }

    @classmethod
    def setUpClass(cls):
        cls.plain = {}

    def plain_runs(self, feature):
        if feature not in self.plain:
            file = runner.ProgramFile(feature)
            self.plain[feature] = [(file, name, runner.plain_run(WORLD, file, name)) for name in file.names(WORLD)]
        return self.plain[feature]

    def test_each_is_noticed(self):
        self.assertEqual(set(self.EXPECTED), set(wrong_compilers.ALL_NAMES))
        for compiler in wrong_compilers.ALL:
            for feature, least in self.EXPECTED[compiler.__name__].items():
                with self.subTest(compiler=compiler.__name__, feature=feature), warnings.catch_warnings():
                    warnings.simplefilter("ignore", RuntimeWarning)  # coroutines that are dropped
                    noticed = [name for file, name, plain in self.plain_runs(feature)
                               if runner.run_program(WORLD, file, name, compiler(torch), plain=plain).difference]
                    self.assertGreaterEqual(len(noticed), least, noticed)

    def test_every_change_between_calls_matters(self):
        """A compiler that does not see a change of a global, an attribute or a cell would be noticed."""
        changes = 0
        for feature in ("changes", "modules"):
            for file, name, plain in self.plain_runs(feature):
                for index in plain.program.between:
                    side = runner.Side(WORLD, file, name, lambda function: function)
                    del side.program.between[index]
                    with self.subTest(program=name, call=index + 1):
                        changes += 1
                        try:
                            side.run()
                        except Exception:  # a later change needs this one
                            continue
                        differing = [number for number, (a, b) in enumerate(zip(plain.descriptions, side.descriptions))
                                     if compare.first_difference(a[1], b[1])]
                        self.assertEqual(differing[:1], [index])
        self.assertGreater(changes, 60)


SOURCE = '''
SEEN = []


@program(given((2,)))
def good(x):
    return x + 1


@program(given((2,)), graphs=2, breaks="print writes")
def two_graphs(x):
    print("x")
    return x + 1


@program(given((2,)))
def raises_by_mistake(x):
    return x + missing


@program(given((2,)), raises="KeyError")
def does_not_raise(x):
    return x


@program(lambda: 1 / 0)
def calls_fail(x):
    return x


@program(given((2,)), use=list)
def state_is_new(x):
    SEEN.append(x)
    yield len(SEEN)
'''


class Counters:
    graph_count = 0
    op_count = 0


class RunnerTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        with open(os.path.join(folder.name, "sample.py"), "w") as file:
            file.write(SOURCE)
        self.assertEqual(runner.feature_files(folder.name), ["sample"])
        self.file = runner.ProgramFile("sample", folder.name)

    def run_one(self, name, compiler=lambda function: function, counters=None):
        return runner.run_program(WORLD, self.file, name, compiler, counters)

    def test_plain_runs(self):
        self.assertIsNone(self.run_one("good").difference)
        self.assertIsNone(self.run_one("state_is_new").difference)
        self.assertIn("NameError", self.run_one("raises_by_mistake").difference)
        self.assertIn("plain calls raise nothing", self.run_one("does_not_raise").difference)
        self.assertIn("ZeroDivisionError", self.run_one("calls_fail").difference)

    def test_graphs_of_the_first_call_are_counted(self):
        counters = Counters()

        def compiler(function):
            def call(x):
                counters.graph_count += 1
                counters.op_count += 3
                return function(x)

            return call

        report = self.run_one("good", compiler, counters)
        self.assertEqual((report.graphs, report.operators, report.wrong_graphs, report.difference), (1, 3, None, None))
        report = self.run_one("two_graphs", compiler, counters)
        self.assertEqual(report.wrong_graphs, "expected 2 graphs in the first call, captured 1 (print writes)")

    def test_a_compiler_that_refuses(self):
        def compiler(function):
            raise NotImplementedError("not this one")

        self.assertIn("NotImplementedError outside of calls: not this one", self.run_one("good", compiler).difference)

    def test_crashes_are_failures(self):
        def on_death(index, reason):
            return f"{index}: {reason}"

        jobs = [lambda: [1, 2], os.abort, lambda: 3, lambda: os._exit(0), lambda: time.sleep(20), lambda: 1 / 0, lambda: None]
        sys.stderr.flush()
        self.assertEqual(list(runner.isolated(jobs, 1, on_death)),
                         [[1, 2], "1: the process dies by SIGABRT", 3, "3: the process ends", "4: takes more than 1 seconds",
                          "5: the process ends", None])
        self.assertEqual(list(runner.isolated([], 1, on_death)), [])

    def test_modes_are_put_back(self):
        def compiler(function):
            def call(x):
                torch.set_grad_enabled(False)
                return function(x)

            return call

        self.assertIn("state['gradients']", self.run_one("good", compiler).difference)
        self.assertTrue(torch.is_grad_enabled())

    def test_instructions_that_are_missing_are_told(self):
        programs_test = importlib.import_module("programs_test")
        faults = programs_test.check_instructions(WORLD, [runner.ProgramFile("matching")])
        self.assertIn("DELETE_DEREF: no program executes it", faults)
        self.assertFalse([fault for fault in faults if fault.startswith("MATCH_")])


if __name__ == "__main__":
    unittest.main()
