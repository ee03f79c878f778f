"""Code that goes on in the middle of a function: capture/resume/.

usage: resume_test.py [--seed=N] [--programs=N] [unittest's arguments]
"""

import _thread
import collections
import copy
import functools
import gc
import operator
import random
import signal
import sys
import types
import unittest
import weakref

import resume_module as resume
import resume_programs as programs
import resume_samples as samples
from bytecode_test import all_codes, library_codes, made

BytecodeError = resume.BytecodeError
SEED, PROGRAMS = 1, 100


class Probe:
    """Called by split functions before they call a continuation."""

    def __init__(self):
        self.reached = 0

    def __call__(self, expected):
        """Whether variables of the caller are bound as expected."""
        variables = expected and sys._getframe(1).f_locals
        if any((name in variables) != bound for name, bound in expected.items()):
            return False
        self.reached += 1
        return True


probe = Probe()


def lines_of(trace, once):
    """The names and lines of a traceback. With `once`, a function that consists of several pieces counts once."""
    lines = []
    while trace:
        line = (trace.tb_frame.f_code.co_qualname, trace.tb_lineno)
        if once and lines and lines[-1][0] == line[0]:
            lines.pop()
        lines.append(line)
        trace = trace.tb_next
    return lines


def outcome(function, args, once=True):
    """The result or error of a call and its arguments afterwards, as something that can be compared."""
    args = copy.deepcopy(args)
    try:
        result = "value", repr(function(*args))
    except Exception as error:
        chain = []
        while error is not None:
            trace = error.__traceback__.tb_next if not chain else error.__traceback__
            chain.append((type(error), str(error), lines_of(trace, once), repr(error.__cause__)))
            error = error.__context__
        result = "error", chain
    return result, repr(args), sys.exc_info()


def positional(code):
    """Whether the code takes positional arguments only: then a chain can call it."""
    return not code.co_flags & 0xC and not code.co_kwonlyargcount


class Driven:
    """Calls functions as their compiled forms are called: the parts of these codes by chains.

    With `every`, continuations break at each instruction.
    """

    def __init__(self, every=False):
        self.every, self.chains, self.handed, self.breaks = every, 0, 0, 0

    def __call__(self, codes, function, *args):
        value, *counts = resume.drive({id(code): code for code in codes}, self.every, function, args)
        self.chains, self.handed, self.breaks = map(operator.add, (self.chains, self.handed, self.breaks), counts)
        return value


def splits(code, methods, indices=None):
    """All ways to split the code: (index, whether it breaks, new code, continuation)."""
    count = len(resume.kinds(code))
    for index in range(count) if indices is None else indices:
        for breaks in (False, True):
            known = set()
            for expected in (True, False):
                found = resume.split(code, index, breaks, methods, probe, expected)
                if found and resume.info(found[1])[4] not in known:
                    known.add(resume.info(found[1])[4])
                    yield index, breaks, *found


def with_code(function, code):
    result = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__,
                                function.__closure__)
    result.__kwdefaults__ = function.__kwdefaults__
    return result


def replaced(code, old, new):
    """The code with this object in it, or itself, replaced."""
    if code is old:
        return new
    constants = tuple(replaced(c, old, new) if isinstance(c, types.CodeType) else c for c in code.co_consts)
    if all(a is b for a, b in zip(constants, code.co_consts)):
        return code
    return code.replace(co_consts=constants)


def executed(function, calls):
    """For each operation the instructions of the function's own code that run."""
    code, units = function.__code__, set()

    def trace(frame, event, arg):
        if frame.f_code is not code:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            units.add(frame.f_lasti // 2)
        return trace

    sys.settrace(trace)
    try:
        for args in calls:
            outcome(function, args)
    finally:
        sys.settrace(None)
    found = {}
    for index, (name, _, _, _, unit) in enumerate(resume.names(code)):
        if unit in units:
            found.setdefault(name, []).append(index)
    return list(found.values())


class InPlace:
    """A function whose code is another one for some time."""

    def __init__(self, function, code):
        self.function, self.code = function, code

    def __enter__(self):
        self.old, self.function.__code__ = self.function.__code__, self.code

    def __exit__(self, *about):
        self.function.__code__ = self.old


def splittable(code):
    return not code.co_flags & samples.GENERATORS and code.co_flags & 3 == 3


class SplitTest(unittest.TestCase):
    """A function that goes on in a continuation does the same as the function."""

    def compare(self, function, calls, target, code, about, run=None, split=None):
        """Runs while the function `target` has the code. Returns whether a continuation was reached."""
        before = probe.reached
        for args, expected in calls:
            with InPlace(target, code):
                found = run(run.every and [split] or all_codes(split), outcome, function, args, False) if run else outcome(function, args)
            self.assertEqual(found, expected, about)
        return probe.reached > before

    def check(self, function, methods, calls, stride=1, run=None):
        """Splits at every instruction, or each so many. Returns how many splits ran their continuation, and not."""
        expected = [(args, outcome(function, args, not run)) for args in calls]
        counts = [0, 0]
        for target in (function, *samples.INNER.get(function, ())):
            whole = target.__code__
            for code in all_codes(whole):
                if not splittable(code) or run and not positional(code):
                    continue
                indices = range(sum(counts) % stride, len(resume.kinds(code)), stride)
                for index, breaks, new, _ in splits(code, methods, indices):
                    about = f"{code.co_qualname}: {'break' if breaks else 'resume'} at {index} " \
                            f"{resume.names(code)[index]}"
                    reached = self.compare(function, expected, target, replaced(whole, code, new), about, run, new)
                    counts[not reached] += 1
        return counts

    def test_every_instruction(self):
        total = [0, 0]
        for function, methods, *calls in samples.SAMPLES:
            with self.subTest(function.__name__):
                for known in {False, methods}:
                    total = [sum(pair) for pair in zip(total, self.check(function, known, calls))]
        print(f"\n{total[0]} splits that ran, {total[1]} that did not", file=sys.stderr)
        self.assertGreater(total[0], 6000)

    def test_every_instruction_by_a_chain(self):
        total, run = [0, 0], Driven()
        for function, _, *calls in samples.SAMPLES:
            with self.subTest(function.__name__):
                total = [sum(pair) for pair in zip(total, self.check(function, False, calls, run=run))]
        print(f"\n{total[0]} splits that ran, {total[1]} that did not, {run.chains} chains", file=sys.stderr)
        self.assertGreater(total[0], 5000)
        self.assertGreater(run.chains, 10000)
        self.assertGreater(run.handed, 5000)

    def test_breaks_at_all_instructions(self):
        """The function breaks at its first instruction, and then at each that comes until one fails."""
        run = Driven(every=True)
        for function, _, *calls in samples.SAMPLES:
            with self.subTest(function.__name__):
                self.check_all(function, [(args, outcome(function, args, False)) for args in calls], run)
        print(f"\n{run.chains} chains, {run.breaks} breaks", file=sys.stderr)
        self.assertGreater(run.breaks, 3000)

    def check_all(self, function, calls, run):
        for code in all_codes(function.__code__):
            if not splittable(code) or not positional(code):
                continue
            first = [i for i, name in enumerate(resume.names(code)) if name[0] == "RESUME"][0] + 1
            new, _ = resume.split(code, first, True, False, probe, True)
            changed = replaced(function.__code__, code, new)
            self.compare(function, calls, function, changed, code.co_qualname, run, new)

    def test_big_functions(self):
        self.assertGreater(self.check(samples.big(7), False, [tuple(range(300)), (*range(305),)], 7)[0], 200)
        self.assertGreater(self.check(samples.many_cells(), False, [(1, 2)], 5)[0], 200)

    def test_continuation_of_a_continuation(self):
        """Splits the function, then the continuation, then its continuation."""
        chance = random.Random(SEED)
        runs = collections.Counter()
        for function, _, *calls in samples.SAMPLES:
            if not splittable(function.__code__):
                continue
            expected = [(args, outcome(function, args)) for args in calls]
            count = len(resume.kinds(function.__code__))
            for _ in range(60):
                code, about, depth = self.chained(function.__code__, count, chance, 3)
                if code:
                    self.compare(function, expected, function, code, (function.__name__, about))
                    runs[depth] += 1
        print(f"\n{dict(runs)} chains by length", file=sys.stderr)
        self.assertGreater(runs[3], 300)

    def chained(self, code, count, chance, depth):
        """Splits at random; the constant that is the continuation is split again. Returns the code, and where."""
        indices = sorted(chance.sample(range(count), min(count, depth)))
        return self.chain(code, indices, chance, [])

    def chain(self, code, indices, chance, about):
        index, breaks, expected = indices[0], chance.random() < 0.5, chance.random() < 0.5
        found = resume.split(code, index, breaks, False, probe, expected)
        if not found:
            return None, about, 0
        about = [*about, (index, breaks)]
        new, continuation = found
        depth = 1
        if len(indices) > 1:
            inner, about, more = self.chain(continuation, indices[1:], chance, about)
            if inner:
                new = replaced(new, continuation, inner)
                depth += more
        return new, about, depth

    def test_random_programs(self):
        chance = random.Random(SEED)
        counts, run = collections.Counter(), Driven(every=True)
        for number in range(PROGRAMS):
            source = programs.write(chance)
            function = made(source, handled=samples.handled, Manager=samples.Manager)
            calls = [(args, outcome(function, args)) for args in ((0, 3), (2, 1), (5, 0))]
            codes = [code for code in all_codes(function.__code__) if splittable(code)]
            ran = executed(function, [args for args, _ in calls])
            for _ in range(6):
                code = function.__code__ if chance.random() < 0.9 else chance.choice(codes)
                breaks = chance.random() < 0.5
                if code is function.__code__:
                    index = chance.choice(chance.choice(ran))
                else:
                    index = chance.randrange(len(resume.kinds(code)))
                found = resume.split(code, index, breaks, False, probe, chance.random() < 0.9)
                if not found:
                    counts["skipped"] += 1
                    continue
                new = replaced(function.__code__, code, found[0])
                before = probe.reached
                for args, expected in calls:
                    about = f"program {number}, {code.co_qualname}, {'break' if breaks else 'resume'} at {index}\n" \
                            + source
                    self.assertEqual(outcome(with_code(function, new), args), expected, about)
                if probe.reached > before:
                    counts[resume.names(code)[index][0]] += 1
                else:
                    counts["not reached"] += 1
            if number % 20 == 0:
                self.check_all(function, [(args, outcome(function, args, False)) for args, _ in calls], run)
            code, about, _ = self.chained(function.__code__, len(resume.kinds(function.__code__)), chance, 3)
            if code:
                for args, expected in calls:
                    self.assertEqual(outcome(with_code(function, code), args), expected,
                                     f"program {number}, {about}\n{source}")
                counts["chains"] += 1
        print(f"\n{dict(counts)}, {run.chains} chains with {run.breaks} breaks", file=sys.stderr)
        self.assertGreater(len(counts), 50)
        self.assertGreater(run.breaks, 3 * PROGRAMS)


class Tracked:
    """An object that tells when it is freed."""

    def __init__(self, log, name):
        self.log, self.name = log, name

    def __del__(self):
        self.log.append(self.name)

    def next(self, name, *others):
        return Tracked(self.log, name)


def frees(log):
    c = item = None
    a = Tracked(log, "a")
    b = a.next("b")
    a = a.next("a2").next("a3", a.next("temporary"), b)
    del b
    items = [a.next(i) for i in range(2)]
    for item in items:
        c = item.next("c", a)
    log.append("after loop")
    items.pop()
    log.append("popped")
    a.next("last", a.next("inner"), items, [a.next("k", a)])
    d, e = a.next("d"), a.next("e")
    log.append("end")
    return d.next("result")


def frees_cells(log, first):
    shared = Tracked(log, "shared")
    get = lambda: (shared, first)  # noqa: E731
    first = shared.next("first")
    log.append("before")
    shared = shared.next("again", get())
    log.append("after")
    del get, first
    log.append("deleted")
    return shared.next("result")


class LifetimeTest(unittest.TestCase):
    def test_objects_are_freed_in_the_same_order(self):
        for function, args in ((frees, ()), (frees_cells, ("x",))):
            plain = []
            # With a hook the caller keeps arguments, in plain Python as well.
            Driven()((), function, plain, *args)
            for methods in (False, True):
                for index, breaks, new, _ in splits(function.__code__, methods):
                    log = []
                    with InPlace(function, new):
                        Driven()(all_codes(new), function, log, *args)
                    self.assertEqual(log, plain, (function.__name__, index, breaks, resume.names(new)[index]))
                    if index < 5:
                        del log[:]
                        with InPlace(function, new):
                            Driven(every=True)([new], function, log, *args)
                        self.assertEqual(log, plain, (function.__name__, index, breaks))

    def test_no_reference_is_lost_or_kept(self):
        def run(x, items, flag):
            try:
                for item in items:
                    y = (x, item, lambda: item)
                    if item == 2 and flag:
                        raise ValueError(x)
            except ValueError as error:
                z = str(error.args), y
                return z, items.copy()
            return [x, y]

        x, items = object(), [1, 2, 3]
        for index, breaks, new, continuation in splits(run.__code__, False):
            split = with_code(run, new)
            watched = (x, items, run.__code__, new, continuation, None, ValueError)
            for flag in (False, True):
                split(x, items, flag)
                gc.collect()
                before = [sys.getrefcount(o) for o in watched]
                for _ in range(50):
                    split(x, items, flag)
                gc.collect()
                after = [sys.getrefcount(o) for o in watched]
                for one, other in zip(before, after):
                    self.assertLess(abs(one - other), 10, (index, breaks, flag))

    def test_code_objects_are_freed(self):
        def run(x):
            return x + 1, x

        def count():
            return sum(isinstance(o, types.CodeType) for o in gc.get_objects())

        root = run.__code__.replace()
        alive = weakref.ref(root)
        split, continuation = resume.split(root, 2, True, False, None, True)
        alive_continuation = weakref.ref(continuation)
        del split, continuation, root
        gc.collect()
        self.assertIsNone(alive_continuation())
        self.assertIsNone(alive())


def dead_handler():
    try:
        pass
    except ValueError as error:
        return error


class LayoutTest(unittest.TestCase):
    """States that are given by hand."""

    def index_of(self, code, name, number=0):
        return [i for i, (op, *_) in enumerate(resume.names(code)) if op == name][number]

    def test_order_of_arguments(self):
        def root(a, b, c, *rest, d=1, **named):
            cell = c
            del b
            return f"{a}", [c, rest, d, named, (lambda: (cell, a))()]

        code = root.__code__
        at = self.index_of(code, "BUILD_LIST")
        stack, bindings = resume.kinds(code)[at]
        self.assertEqual({kind for kind, _ in stack}, {"value"})
        again, twice = resume.make(code, at, False, stack, bindings)
        self.assertIs(again, twice)
        self.assertEqual((again.co_argcount, again.co_posonlyargcount, again.co_kwonlyargcount), (10, 10, 0))
        self.assertEqual(again.co_flags & 0xC, 0)
        self.assertEqual((again.co_name, again.co_qualname, again.co_filename, again.co_firstlineno),
                         (code.co_name, code.co_qualname, code.co_filename, code.co_firstlineno))
        cells = tuple(types.CellType(i) for i in ("cell a", "cell"))
        self.assertEqual(again.co_freevars, ("a", "cell"))
        function = types.FunctionType(again, globals(), closure=cells)
        found = function("text", "1", "2", "3", "4", "5", "local c", "local rest", "local d", "local named")
        self.assertEqual(found, ("text", ["1", "2", "3", "4", "5"]))

    def test_info(self):
        def root(n, x):
            for i in range(n):
                x = max(x, i, key=lambda v: -v)
            return x

        code = root.__code__
        names = resume.names(code)
        start = self.index_of(code, "KW_NAMES")
        for at in range(start, start + 3):
            self.assertEqual(resume.group_start(code, at), start)
        self.assertEqual(resume.group_start(code, start + 3), start + 3)
        stack, bindings = resume.kinds(code)[start]
        made_codes = {resume.make(code, at, True, stack, bindings)[0].co_code for at in range(start, start + 3)}
        self.assertEqual(len(made_codes), 1)
        with self.assertRaisesRegex(BytecodeError, "part of a call"):
            resume.make(code, start + 1, False, stack, bindings)
        self.assertIsNone(resume.info(code))
        for breaks in (False, True):
            made_code = resume.make(code, start, breaks, stack, bindings)[0]
            root_code, kind, at, its_stack, its_bindings, instructions, slots = resume.info(made_code)
            self.assertIs(root_code, code)
            self.assertEqual((kind, at, its_stack, its_bindings), (breaks, start, stack, bindings))
            self.assertEqual(slots, [0, 1, 2])
            mapped = [(names[i][0], name[0]) for i, name in zip(instructions, resume.names(made_code)) if i >= 0]
            self.assertEqual([a for a, _ in mapped], [b for _, b in mapped])
            self.assertIn("KW_NAMES", [a for a, _ in mapped])
            if breaks:
                # Nothing of the root is left but the copy, when no handler is there.
                self.assertEqual(len(mapped), 3)
                (inner,) = [c for c in made_code.co_consts if isinstance(c, types.CodeType) and resume.info(c)]
                self.assertEqual(resume.info(inner)[2], start + 3)
            with self.assertRaisesRegex(BytecodeError, "has no continuations of its own"):
                resume.make(made_code, start, breaks, stack, bindings)

    def test_unused_code_is_left_out(self):
        lines = "".join(f"    x += {i}.5\n" for i in range(500))
        code = made(f"def f(x):\n{lines}    return x\n").__code__
        at = len(resume.kinds(code)) - 10
        stack, bindings = resume.kinds(code)[at]
        for breaks in (False, True):
            self.assertLess(len(resume.make(code, at, breaks, stack, bindings)[0].co_code), 200)

    def test_refusals(self):
        def generator():
            yield 1

        async def coroutine():
            pass

        def function(a):
            b = [a, a]
            return b

        for code in (generator.__code__, coroutine.__code__, compile("x = 1", "<m>", "exec"),
                     compile("class C:\n  x = 1", "<m>", "exec").co_consts[0]):
            with self.subTest(code.co_name), self.assertRaisesRegex(BytecodeError, "has no continuations"):
                resume.make(code, 3, False, [], "")
        code = function.__code__
        value, null = ("value", -1), ("null", -1)
        good = [(2, [value], "+-"), (1, [], "+-")]
        for args in good:
            resume.make(code, args[0], False, *args[1:])
        for index, stack, bindings, why in ((0, [], "+-", "no continuation can begin"), (-1, [], "+-", "can begin"),
                                            (99, [], "+-", "can begin"), (2, [], "+-", "another number"),
                                            (2, [value], "+", "another number"), (2, [null], "+-", "of this kind"),
                                            (2, [("offset", 1)], "+-", "of this kind"),
                                            (2, [("previous", -1)], "+-", "of this kind"),
                                            (2, [value], "--", "cannot be unbound"), (2, [value], "++", "be bound")):
            with self.subTest(why), self.assertRaisesRegex(BytecodeError, why):
                resume.make(code, index, False, stack, bindings)
        with self.assertRaisesRegex(BytecodeError, "no path leads here"):
            dead = [i for i, state in enumerate(resume.kinds(dead_handler.__code__)) if state is None]
            resume.make(dead_handler.__code__, dead[0], False, [], "")

    def test_offset_of_a_failed_instruction(self):
        """RERAISE sets the line of the frame to that of the instruction that failed."""
        def root(x):
            y = x
            try:
                len(x)
            finally:
                len(y)

        code = root.__code__
        names = resume.names(code)
        reraise = [i for i, name in enumerate(names) if name[:2] == ("RERAISE", 1)][0]
        stack, bindings = resume.kinds(code)[reraise]
        self.assertEqual([kind for kind, _ in stack], ["value", "offset", "value"])
        with self.assertRaisesRegex(BytecodeError, "names no instruction"):
            resume.make(code, reraise, False, stack, bindings)
        error = ValueError("again")
        for failed, name in enumerate(names):
            if name[3] == code.co_firstlineno or name[3] < 0 or resume.kinds(code)[failed] is None:
                continue
            stack[1] = ("offset", failed)
            for breaks in (False, True):
                split = resume.make(code, reraise, breaks, stack, bindings)[0]
                seen = []

                def profile(frame, event, arg):
                    if frame.f_code is split and event == "return":
                        seen.append(frame.f_lineno)

                sys.setprofile(profile)
                try:
                    types.FunctionType(split, globals())(None, error, 1, 2)
                except ValueError as raised:
                    self.assertIs(raised, error)
                finally:
                    sys.setprofile(None)
                self.assertEqual(seen, [name[3]])

    def test_lines_are_traced(self):
        def root(n):
            total = 0
            while n:
                n -= 1
                if n == 1:
                    total += 5
                total += n
            return total

        def lines(function):
            seen = []

            def trace(frame, event, arg):
                if frame.f_code.co_name == "root":
                    seen.append(frame.f_lineno)
                    return trace
                return None

            sys.settrace(trace)
            try:
                function(3)
            finally:
                sys.settrace(None)
            # A call shows the line of the instruction where it begins, the return its own again.
            return [line for line, before in zip(seen, [None, *seen]) if line != before]

        expected = lines(root)
        for index, breaks, new, _ in splits(root.__code__, False):
            found = lines(with_code(root, new))
            at = resume.names(root.__code__)[index][3]
            # The pieces return one after the other, each from its line.
            while found[-1] == at and found != expected:
                found.pop()
            self.assertEqual(found, expected, (index, breaks))

    def test_signal_at_the_begin_goes_to_the_handler(self):
        """A pending signal is handled by RESUME, where the instruction's handler must be in force."""
        def root(log):
            x = 0
            try:
                x = len(log)
                log.append(x)
            finally:
                log.append("finally")

        def interrupt(*about):
            raise InterruptedError

        code = root.__code__
        names = resume.names(code)
        old = signal.signal(signal.SIGUSR1, interrupt)
        count = 0
        try:
            for at, name in enumerate(names):
                line = name[3] - code.co_firstlineno
                if line not in (3, 4) or resume.group_start(code, at) != at:
                    continue
                stack, bindings = resume.kinds(code)[at]
                stack = [("null" if "null" in kind else kind, i) for kind, i in stack]
                values = [None] * sum(kind == "value" for kind, _ in stack)
                for breaks in (False, True):
                    function = types.FunctionType(resume.make(code, at, breaks, stack, bindings)[0], globals())
                    log = []
                    # Between these two calls nothing looks at signals.
                    calls = (functools.partial(_thread.interrupt_main, signal.SIGUSR1),
                             functools.partial(function, *values, log, 0))
                    with self.assertRaises(InterruptedError, msg=(at, name)):
                        list(map(operator.call, calls))
                    self.assertEqual(log, ["finally"], (at, name))
                    count += 1
        finally:
            signal.signal(signal.SIGUSR1, old)
        self.assertGreater(count, 15)


class LibraryTest(unittest.TestCase):
    def test_standard_library(self):
        """Code of the standard library at random instructions: the continuations can be written."""
        chance = random.Random(SEED)
        count = skipped = 0
        for code in library_codes():
            states = resume.kinds(code)
            if not splittable(code):
                continue
            for index in chance.sample(range(len(states)), min(len(states), 3)):
                for breaks in (False, True):
                    if resume.split(code, index, breaks, False, probe, chance.random() < 0.5):
                        count += 1
                    else:
                        skipped += 1
        print(f"\n{count} splits, {skipped} instructions not reached", file=sys.stderr)
        self.assertGreater(count, 40000)

    def test_changed_code_is_refused_or_followed(self):
        """Code with wrong bytes: an error, or continuations that are never run here."""
        chance = random.Random(SEED)
        codes = [code for function, *_ in samples.SAMPLES for code in all_codes(function.__code__)]
        counts = collections.Counter()
        for _ in range(6000):
            code = chance.choice(codes)
            units = bytearray(code.co_code)
            for _ in range(chance.randint(1, 3)):
                units[chance.randrange(len(units))] = chance.randrange(256)
            wrong = code.replace(co_code=bytes(units))
            try:
                index = chance.randrange(len(resume.kinds(wrong)))
                counts["followed"] += 1
                resume.split(wrong, index, chance.random() < 0.5, chance.random() < 0.5, probe, True)
                counts["split"] += 1
            except BytecodeError:
                counts["refused"] += 1
        print(f"\n{dict(counts)}", file=sys.stderr)
        self.assertGreater(min(counts.values()), 500)


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        if argument.startswith("--seed="):
            SEED = int(argument[7:])
        elif argument.startswith("--programs="):
            PROGRAMS = int(argument[11:])
    sys.argv = [a for a in sys.argv if not a.startswith(("--seed=", "--programs="))]
    unittest.main()
