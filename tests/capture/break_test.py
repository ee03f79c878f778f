"""Breaks of compiled functions: wick.compile goes on behind them as plain Python does."""

import contextlib
import gc
import inspect
import io
import os
import signal
import sys
import threading
import time
import traceback
import tracemalloc
import types
import unittest
import warnings
import weakref

os.environ["WICK_CAPTURE"] = "strict"
import wick  # noqa: E402


class Node:
    pass


def steps(count):
    """A function that is true `count` times."""
    return iter([1] * count + [0]).__next__


def loop(step, look):
    seen = set()
    while step():
        seen.add(look())
    return seen


def depth():
    count, frame = 0, sys._getframe()
    while frame:
        count, frame = count + 1, frame.f_back
    return count


class BreakTest(unittest.TestCase):
    def setUp(self):
        wick.compiler.reset()
        self.expected = []
        self.enterContext(warnings.catch_warnings())
        warnings.filterwarnings("ignore", ".*the limit.*cache_size_limit.*")
        self.enterContext(contextlib.redirect_stdout(io.StringIO()))

    def tearDown(self):
        for entries, breaks in self.expected:
            self.assertGreaterEqual(sum(not entry["complete"] for entry in entries), breaks)

    def compiled(self, function, breaks=1):
        """The compiled function. Its calls must break in at least so many places."""
        entries = []
        self.expected.append((entries, breaks))
        region = wick._C._make_region(False, None, lambda code, entry: entries.append(entry))
        return wick._compiled.function(function, region)

    def test_objects_die_when_they_are_deleted(self):
        def deletes():
            node = Node()
            ref = weakref.ref(node)
            print("break")
            before = ref() is None
            del node
            after = ref() is None
            print(before)
            node = Node()
            node.again = other = Node()
            ref = weakref.ref(other)
            print(ref)
            other = None
            kept = ref() is None
            print(kept)
            node.again = None
            return before, after, kept, ref() is None

        call = self.compiled(deletes, 2)
        for _ in range(3):
            self.assertEqual(call(), deletes())

    def test_argument_dies_with_its_last_reference(self):
        def takes(box):
            node = box.pop()
            ref = weakref.ref(node)
            print(ref)
            node = None
            return ref() is None

        def gives():
            """Its callee has the only reference to the node, apart from the box."""
            return takes([Node()])

        self.assertTrue(gives())
        for _ in range(3):
            self.assertTrue(self.compiled(takes)([Node()]))
            self.assertTrue(self.compiled(gives)())

    def test_many_breaks_need_one_frame(self):
        call = self.compiled(loop, 2)
        self.assertEqual(len(call(steps(100_000), depth)), 1)

    def test_depth_is_that_of_plain_python(self):
        def frames(print):
            print("break")
            first = [each.function for each in inspect.stack(0)]
            print("break")
            return first, [each.function for each in inspect.stack(0)]

        def plain(*args):
            return frames(*args)

        found, expected = self.compiled(frames, 2)(print), plain(print)
        for one, other in zip(found, expected):
            self.assertEqual(one[0], "frames")
            # The callers differ: __call__() here, plain() there.
            self.assertEqual(one[2:], other[2:])

    def test_limit_of_recursion(self):
        def down(count, look):
            look()
            count[0] += 1
            look()
            return down(count, look)

        def run(function):
            count = [0]
            try:
                function(count, gc.isenabled)
            except RecursionError as error:
                return count[0], str(error)

        call = self.compiled(down)
        old = sys.getrecursionlimit()
        sys.setrecursionlimit(400)
        try:
            results = [run(call), run(call), run(down)]
        finally:
            sys.setrecursionlimit(old)
        self.assertGreater(results[2][0], 300)
        for count, message in results[:2]:
            # The wrapper of the first call needs a frame and calls of C, and so do calls at breaks.
            self.assertAlmostEqual(count, results[2][0], delta=5)
            self.assertIn("maximum recursion depth exceeded", message)

    def test_traceback(self):
        def fails(x):
            print(x)
            y = x + 1
            print(y)
            try:
                print(y, file=3)
            except AttributeError as error:
                print("handled")
                raise ValueError(y) from error

        def entries(function):
            try:
                function(3)
            except ValueError as error:
                return [[(e.name, e.lineno) for e in traceback.extract_tb(each.__traceback__)
                         if e.name not in ("compiled", "entries")] for each in (error, error.__cause__)]

        self.assertEqual(entries(self.compiled(fails, 2)), entries(fails))

    def test_peak_of_memory(self):
        def allocates(step):
            x = bytearray(1 << 20)
            while step():
                y = bytes(x)
                x = None
                print(len(y))
                x = bytearray(y)
                y = None
                print(len(x))
            return len(x)

        peaks = []
        for function in (allocates, self.compiled(allocates, 2)):
            function(steps(2))
            gc.collect()
            tracemalloc.start()
            function(steps(10))
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        self.assertLess(peaks[1], peaks[0] + (1 << 19))

    def test_nothing_is_kept(self):
        def work(x, step):
            items = [x]
            get = lambda: items  # noqa: E731
            while step():
                items = [*get()]
            if x is None:
                raise ValueError
            return items

        def run(x):
            with contextlib.suppress(ValueError):
                call(x, steps(20))

        call = self.compiled(work, 2)
        for x in (1, None):
            for _ in range(20):
                run(x)
            gc.collect()
            before = sys.getallocatedblocks()
            for _ in range(100):
                run(x)
            gc.collect()
            self.assertLess(sys.getallocatedblocks() - before, 300)

    def test_tracing_that_begins_within_a_call(self):
        def work(start):
            x = [1]
            start()
            x.append(2)
            print(x)
            return x

        for set_function in (sys.setprofile, sys.settrace):
            seen = []

            def note(frame, event, arg):
                if frame.f_code.co_name == "work" and event == "return":
                    seen.append(arg)
                return note

            def start():
                sys._getframe(1).f_trace = note
                set_function(note)

            call = self.compiled(work)
            try:
                value = call(start)
            finally:
                set_function(None)
            self.assertEqual(value, [1, 2])
            self.assertGreater(len(seen), 0)
            for each in seen:
                self.assertEqual(each, [1, 2])
            self.assertEqual(call(lambda: None), [1, 2])

    def test_reset_within_a_call(self):
        def work(step, reset):
            count = []
            while step():
                count.append(1)
                reset()
            return len(count)

        self.assertEqual(self.compiled(work)(steps(20), wick.compiler.reset), 20)

    def test_disabled_within_a_call(self):
        """Continuations that run plainly, because all of the function does from some time on."""
        def work(step, look):
            while step():
                look()
            return "end"

        call = self.compiled(work)
        seen = []

        def look():
            seen.append(sys._getframe(1).f_code)
            if len(seen) == 3:
                wick.compiler.disable(types.FunctionType(seen[0], {}))

        self.assertEqual(call(steps(10), look), "end")
        self.assertEqual(len(seen), 10)

    def test_program_calls_the_code_of_a_break(self):
        def work(grab, x):
            y = grab(x)
            return [y, x]

        def call_again(value):
            code = codes[0]
            names = code.co_varnames[:code.co_argcount]
            args = [(lambda x: value) if i == 0 else value for i in range(len(names))]
            return types.FunctionType(code, globals())(*args)

        def grab(x):
            codes.append(sys._getframe(1).f_code)
            inner.append(call_again("inner"))
            return "first"

        codes, inner = [], []
        self.assertEqual(self.compiled(work)(grab, "x"), ["first", "x"])
        self.assertEqual(inner, [["inner", "inner"]])
        self.assertEqual(call_again("later"), ["later", "later"])
        self.assertEqual(wick.compile(call_again)("later"), ["later", "later"])

    def test_break_within_a_break(self):
        def inner(x):
            print(x)
            return [x]

        def outer(x, function):
            y = function(x)
            print(y)
            z = [each for each in map(inner, (y, x))]
            print(z)
            return y, z

        # A function of C calls the inner one.
        for function in (inner, lambda x: list(map(inner, [x]))[0]):
            self.assertEqual(self.compiled(outer, 2)(1, function), outer(1, function))

    def test_generators_and_breaks(self):
        def work(step, x):
            print(x)
            first = next(step, None)
            print(first)
            return first, x

        def generate(count, function):
            for i in range(count):
                yield function(generate(i, function), i)

        self.assertEqual(list(generate(5, self.compiled(work))), list(generate(5, work)))

    def test_signals(self):
        class Alarm(Exception):
            pass

        def ring(*about):
            raise Alarm

        def work(step, look):
            caught = 0
            going = True
            while going:
                try:
                    while step():
                        look()
                    going = False
                except Alarm:
                    caught += 1
            return "end"

        call = self.compiled(work)
        missed = 0
        old = signal.signal(signal.SIGALRM, ring)
        try:
            call(steps(5), depth)
            for number in range(200):
                try:
                    signal.setitimer(signal.ITIMER_REAL, 1e-5 * (number % 50 + 1))
                    self.assertEqual(call(iter([1] * 100 + [0] * 100).__next__, gc.isenabled), "end")
                    time.sleep(0.01)
                except Alarm:
                    missed += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, old)
        self.assertGreater(missed, 0)

    def test_threads(self):
        def work(step, name):
            made = []
            while step():
                made.append(name)
            return made

        call = self.compiled(work)
        call(steps(3), "0")
        errors = []

        def run(name):
            for _ in range(10):
                if call(steps(100), name) != [name] * 100:
                    errors.append(name)

        old = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        try:
            threads = [threading.Thread(target=run, args=(str(i),)) for i in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            sys.setswitchinterval(old)
        self.assertEqual(errors, [])


if __name__ == "__main__":
    unittest.main()
