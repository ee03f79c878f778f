"""Chains of calls, by which functions go on behind breaks: capture/bytecode/code_chain.h."""

import gc
import operator
import signal
import sys
import threading
import time
import tracemalloc
import types
import unittest
import weakref

import resume_module as resume


def first_instruction(code):
    return [i for i, name in enumerate(resume.names(code)) if name[0] == "RESUME"][0] + 1


def broken(function):
    """The function's code, which breaks at its first instruction."""
    code = function.__code__
    return resume.split(code, first_instruction(code), True, False, None, True)[0]


def drive(function, *args, inner=None):
    """Calls the function; it, or the function `inner` that it calls, breaks at each instruction.

    Returns the value and how many breaks there were.
    """
    inner = inner or function
    old, new = inner.__code__, broken(inner)
    inner.__code__ = new
    try:
        value, chains, _, breaks = resume.drive({id(new): new}, True, function, args)
    finally:
        inner.__code__ = old
    if not chains:
        raise AssertionError("the function was not called")
    return value, breaks


def plain(function, *args):
    """The value of a call within a frame hook that changes nothing."""
    return resume.drive({}, False, function, args)[0]


def constants(code):
    """All constants of the code, and of codes in it."""
    for constant in code.co_consts:
        yield constant
        if isinstance(constant, types.CodeType):
            yield from constants(constant)


def hand_over_object():
    def function(x):
        return x

    (found,) = {id(c): c for c in constants(broken(function)) if type(c).__name__ == "_HandOver"}.values()
    return found


class Node:
    pass


def loop(count, look):
    i = 0
    seen = set()
    while i < count:
        seen.add(look())
        i += 1
    return i, seen


class StackTest(unittest.TestCase):
    def test_many_breaks_need_one_frame(self):
        count = 12_000
        (reached, addresses), breaks = drive(loop, count, resume.stack_address)
        self.assertEqual(reached, count)
        self.assertGreater(breaks, 100_000)
        self.assertEqual(len(addresses), 1)

    def test_depth_of_python_is_that_of_plain_calls(self):
        found, _ = drive(loop, 20, self.depth)
        self.assertEqual(found, plain(loop, 20, self.depth))
        self.assertEqual(found[0], 20)

    def test_limit_of_recursion_is_that_of_plain_calls(self):
        def down(log):
            log[0] += 1
            return down(log)

        def deep(log):
            try:
                down(log)
            except RecursionError as error:
                return str(error)

        old = sys.getrecursionlimit()
        expected, log = [0], [0]
        sys.setrecursionlimit(300)
        try:
            message = plain(deep, expected)
            found, _ = drive(deep, log, inner=down)
        finally:
            sys.setrecursionlimit(old)
        self.assertEqual((found, log), (message, expected))
        self.assertGreater(log[0], 200)

    def test_many_breaks_near_the_limit_of_recursion(self):
        old = sys.getrecursionlimit()
        depth = plain(self.depth)
        sys.setrecursionlimit(depth + 20)
        try:
            (reached, _), _ = drive(loop, 300, resume.stack_address)
        finally:
            sys.setrecursionlimit(old)
        self.assertEqual(reached, 300)

    @staticmethod
    def depth():
        depth, frame = 0, sys._getframe()
        while frame:
            depth, frame = depth + 1, frame.f_back
        return depth

    def test_traceback_has_one_entry(self):
        def fails(x):
            y = abs(x)
            y = abs(y) + 1
            return y // (x - x)

        try:
            drive(fails, 3)
        except ZeroDivisionError as error:
            entries, trace = [], error.__traceback__
            while trace:
                entries.append((trace.tb_frame.f_code.co_name, trace.tb_lineno - fails.__code__.co_firstlineno))
                trace = trace.tb_next
        self.assertEqual([entry for entry in entries if entry[0] == "fails"], [("fails", 3)])
        self.assertEqual([name for name, _ in entries], ["test_traceback_has_one_entry", "drive", "fails"])


class LifetimeTest(unittest.TestCase):
    def test_objects_die_when_they_are_deleted(self):
        def deletes(box):
            log = []
            node = box.pop()
            ref = weakref.ref(node)
            log.append(ref() is None)
            del node
            log.append(ref() is None)
            first = second = Node()
            ref = weakref.ref(first)
            first = None
            log.append(ref() is None)
            second = abs(-1)
            log.append(ref() is None)
            ref = weakref.ref(node := Node())
            get = lambda: node  # noqa: E731
            log.append(ref() is None)
            node = get
            log.append(ref() is None)
            return log

        self.assertEqual(deletes([Node()]), [False, True] * 3)
        self.assertEqual(drive(deletes, [Node()])[0], [False, True] * 3)

    def test_objects_die_while_a_profile_function_is_set(self):
        def work(start):
            node = Node()
            ref = weakref.ref(node)
            start()
            del node
            return ref() is None

        try:
            value, _ = drive(work, lambda: sys.setprofile(lambda *about: None))
        finally:
            sys.setprofile(None)
        self.assertTrue(value)

    def test_peak_of_memory_is_that_of_plain_calls(self):
        def allocates(count):
            x = None
            for _ in range(count):
                x = bytearray(1 << 20)
                y = bytes(x)
                x = None
                x = y + y[:10]
                y = None
                x = None
            return x

        peaks = []
        for run in (plain, drive):
            run(allocates, 2)
            gc.collect()
            tracemalloc.start()
            run(allocates, 5)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        self.assertLess(peaks[1], peaks[0] + (1 << 19))

    def test_nothing_is_kept(self):
        class Fails(Exception):
            pass

        def work(x, fails):
            cell = [x]
            get = lambda: cell  # noqa: E731
            for i in range(5):
                cell = [*get(), i]
            if fails:
                raise Fails(cell)
            return cell

        def run(fails):
            try:
                drive(work, Node(), fails)
            except Fails:
                pass

        for fails in (False, True):
            run(fails)
            gc.collect()
            before = sys.getallocatedblocks()
            for _ in range(30):
                run(fails)
            gc.collect()
            self.assertLess(sys.getallocatedblocks() - before, 300)


class ProgramTest(unittest.TestCase):
    """Nothing that a program does makes it see the value of a part that has handed over."""

    def test_profile_and_trace_functions_see_true_values(self):
        def work(start):
            x = [1]
            start()
            x.append(2)
            x.append(3)
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

            try:
                value, _ = drive(work, start)
            finally:
                set_function(None)
            self.assertEqual(value, [1, 2, 3])
            self.assertGreater(len(seen), 1)
            for each in seen:
                self.assertEqual(each, [1, 2, 3])

    def test_tracing_for_a_short_time(self):
        def work(count):
            total = 0
            for i in range(count):
                if i == 5:
                    sys.setprofile(lambda *about: None)
                total += i
                if i == 7:
                    sys.setprofile(None)
            return total

        self.assertEqual(drive(work, 20)[0], 190)

    def test_program_calls_the_code_of_a_part(self):
        inner = []

        def work(grab, x):
            y = grab(x)
            return [y, x]

        def call(y, x):
            """Calls the part that calls grab(), with another function in its place."""
            (code,) = {id(c): c for c in codes}.values()
            return types.FunctionType(code, globals())(lambda x: y, None, None, x)

        def grab(x):
            codes.append(sys._getframe(1).f_code)
            inner.append(call("inner", "other"))
            return "first"

        codes = []
        self.assertEqual(drive(work, grab, "x")[0], ["first", "x"])
        self.assertEqual(inner, [["inner", "other"]])
        info = resume.info(codes[0])
        self.assertEqual(info[1], 1)
        self.assertEqual(call("later", "z"), ["later", "z"])
        self.assertEqual(plain(call, "later", "z"), ["later", "z"])

    def test_program_calls_the_function_of_a_part(self):
        """It is found among the garbage collector's objects."""
        inner, kept = [], []

        def work(grab, x):
            y = grab(x)
            return [y, x]

        def grab(x):
            code = sys._getframe(1).f_code
            (part,) = [o for o in gc.get_referrers(code) if isinstance(o, types.FunctionType)]
            kept.append(part)
            inner.append(part(lambda x: "inner", None, None, "other"))
            return "first"

        self.assertEqual(drive(work, grab, "x")[0], ["first", "x"])
        self.assertEqual(inner, [["inner", "other"]])
        self.assertEqual(kept[0](lambda x: "later", None, None, "z"), ["later", "z"])
        self.assertEqual(plain(kept[0], lambda x: "later", None, None, "z"), ["later", "z"])

    def test_calls_while_the_hook_is_paused(self):
        def work(x):
            return [abs(x), -x]

        new = broken(work)
        work.__code__ = new
        codes = {id(new): new}
        found, *counts = resume.drive(codes, True, resume.run_paused, (work, (-3,)))
        self.assertEqual((found, counts), ([3, 3], [0, 0, 0]))

        def around(x):
            return resume.run_paused(work, (x,)), work(x)

        whole = broken(around)
        around.__code__ = whole
        found, *_ = resume.drive({**codes, id(whole): whole}, True, around, (-3,))
        self.assertEqual(found, ([3, 3], [3, 3]))

    def test_object_of_the_code_in_wrong_hands(self):
        hand_over = hand_over_object()
        for wrong in (None, (), (1,), [], ("a", "b")):
            with self.assertRaises(TypeError):
                hand_over[wrong]
        with self.assertRaises(TypeError):
            type(hand_over)()

        def two(a, b):
            return a, b

        self.assertEqual(hand_over[two.__code__, 1, 2], (1, 2))
        with self.assertRaises(TypeError):
            hand_over[two.__code__, 1]
        cell = types.CellType(5)
        free = (lambda: cell).__code__  # noqa: E731
        for wrong in ((free,), (free, None)):
            with self.assertRaises(TypeError):
                hand_over[wrong]
        for wrong in ((free, ()), (free, (1,))):
            with self.assertRaises(RuntimeError):
                hand_over[wrong]
        self.assertEqual(hand_over[free, (cell,)], 5)

        def work(x, call):
            call(hand_over, (two.__code__, x, x))
            y = hand_over[two.__code__, x, x]
            call(hand_over, 1) if x > 5 else None
            return y

        drive(work, 1, operator.getitem)
        with self.assertRaises(TypeError):
            drive(work, 6, operator.getitem)

    def test_signals(self):
        class Alarm(Exception):
            pass

        def ring(*about):
            raise Alarm

        def work(count):
            i = caught = 0
            while i < count:
                try:
                    while i < count:
                        i = i + 1
                except Alarm:
                    caught += 1
            return i

        missed = 0
        old = signal.signal(signal.SIGALRM, ring)
        try:
            for number in range(300):
                try:
                    signal.setitimer(signal.ITIMER_REAL, 1e-5 * (number % 60 + 1))
                    self.assertEqual(drive(work, 30)[0], 30)
                    time.sleep(0.01)
                except Alarm:
                    missed += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, old)
        self.assertGreater(missed, 0)

    def test_threads(self):
        def work(count, name):
            made = []
            for i in range(count):
                made.append((name, i))
            return made

        new = broken(work)
        work.__code__ = new
        errors = []

        def run(name):
            for _ in range(10):
                found, *_ = resume.drive({id(new): new}, True, work, (100, name))
                if found != [(name, i) for i in range(100)]:
                    errors.append(found)

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

    def test_called_by_generators(self):
        def work(step, x):
            return [next(step, None), x]

        def generate(count):
            for i in range(count):
                step = generate(i)
                yield work(step, i)

        expected = list(generate(5))
        found, breaks = drive(lambda: list(generate(5)), inner=work)
        self.assertEqual(found, expected)
        self.assertGreater(breaks, 50)


if __name__ == "__main__":
    unittest.main()
