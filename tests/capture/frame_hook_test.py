"""The frame hook: frames, errors, scopes, other hooks (capture/bytecode/frame.h, frame_hook.h)."""

import asyncio
import functools
import importlib.machinery
import importlib.util
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
import types
import unittest

import foreign_hook as foreign
import frame_hook_module as hook
from hook_cases import HookTest, Recorder, outcome, recursion, run, script


class Frames(HookTest):
    def test_slots(self):
        def outer(a, b=2, *rest, c, **more):
            local = a

            def inner(d):
                return local, b, d

            return inner(4)

        recorder = Recorder()
        self.assertEqual(hook.run(recorder, lambda: outer(1, 5, 6, c=3, e=7)), (1, 5, 4))
        (_, slots, flags), (_, inner_slots, inner_flags) = recorder.frames[1:]
        # `b` is an argument and a cell; it has its value yet.
        self.assertEqual(dict(zip(outer.__code__.co_varnames, slots)),
                         {"a": 1, "b": 5, "c": 3, "rest": (6,), "more": {"e": 7}, "inner": None})
        self.assertEqual(len(slots), 7)
        self.assertEqual(inner_slots, (4, None, None))
        self.assertIs(flags["function"], outer)
        self.assertIs(flags["globals"], globals())
        self.assertIs(flags["builtins"], __builtins__.__dict__)
        self.assertEqual([cell.cell_contents for cell in inner_flags["closure"]], [5, 1])
        for each in flags, inner_flags:
            self.assertEqual((each["has_locals"], each["generator"], each["started"]), (False, False, False))

    def test_values_of_calls(self):
        class Number:
            def __init__(self, value):
                self.value = value

            def __add__(self, other):
                return self.value + other

            def __getattr__(self, name):
                return "attribute"

            def __len__(self):
                return 1

            @property
            def double(self):
                return 2 * self.value

        def key(x):
            return -x

        def use():
            number = Number(1)
            return number + 2, number.double, len(number), number.other, sorted([1, 2, 3], key=key), \
                list(map(key, [5])), functools.partial(key, 4)(), (lambda: 6)(), [x for x in (1, 2)]

        plain = use()
        result, names = run(use)
        self.assertEqual(result, plain)
        self.assertEqual(names, ["use", "__init__", "__add__", "double", "__len__", "__getattr__", "key", "key", "key",
                                 "key", "key", "<lambda>", "<listcomp>"])
        result, _ = run(use, __add__="added", double="doubled", key=1, __len__=9, __getattr__="got", **{"<lambda>": 8})
        self.assertEqual(result, ("added", "doubled", 9, "got", [1, 2, 3], [1], 1, 8, [1, 2]))
        with self.assertRaisesRegex(TypeError, "__init__"):
            run(use, __init__=1)

    def test_frames_that_are_never_captured(self):
        async def coroutine():
            return 1

        async def asynchronous():
            yield 1

        async def collect():
            return [x async for x in asynchronous()] + [await coroutine()]

        @types.coroutine
        def marked():
            yield 1

        def others():
            class Body:
                here = 1

            exec("a = 1", {})
            eval("1 + 1")
            eval(compile("2", "<text>", "eval"))
            return list(marked())

        recorder = Recorder()
        self.assertEqual(hook.run(recorder, others), [1])
        self.assertEqual(recorder.names(), ["others"])
        recorder = Recorder()
        self.assertEqual(hook.run(recorder, asyncio.run, collect()), [1, 1])
        self.assertFalse({"coroutine", "asynchronous", "collect"} & set(recorder.names()))
        # A function on code of a module.
        module = types.FunctionType(compile("seen = 1", "<module>", "exec"), {})
        self.assertEqual(run(module), (None, []))
        body = types.FunctionType(others.__code__.replace(co_flags=others.__code__.co_flags & ~2), globals(),
                                  closure=others.__closure__)
        self.assertEqual(run(body), ([1], []))

    def test_generators(self):
        log = []

        def generator(n):
            try:
                for i in range(n):
                    got = yield i
                    log.append(got)
                return "end"
            except KeyError:
                log.append("caught")
                yield "after"
            finally:
                log.append("finally")

        def consume():
            log.clear()
            first = generator(3)
            seen = [next(first), first.send("sent")] + list(first)
            second = generator(3)
            next(second)
            seen.append(second.throw(KeyError()))
            second.close()
            third = generator(3)
            next(third)
            del third
            unstarted = generator(1)
            unstarted.close()
            fourth = generator(1)
            next(fourth)
            try:
                fourth.send(None)
            except StopIteration as stop:
                seen.append(stop.value)
            return seen, list(log)

        plain = consume()
        result, names = run(consume)
        self.assertEqual(result, plain)
        self.assertEqual(names, ["consume"] + ["generator"] * 5)
        # A generator that starts within a scope and goes on outside of it, and the other way round.
        started, names = run(generator, 2)
        self.assertEqual((list(started), names), ([0, 1], ["generator"]))
        self.assertEqual(run(list, generator(2)), ([0, 1], []))
        # n yields are n + 2 frames for a hook.
        for n in range(5):
            foreign.install()
            before = foreign.count()
            list(generator(n))
            count = foreign.count() - before
            foreign.remove()
            self.assertEqual(count, n + 2)
        # The value of a generator's call.
        result, _ = run(lambda: list(generator(3)), generator="ab")
        self.assertEqual(result, ["a", "b"])

    def test_slots_that_are_taken(self):
        def add(a, b):
            return a, b

        class Counted(int):
            pass

        def use(a, b):
            return add(a, b)

        x, y = Counted(1000), Counted(2000)
        counts = sys.getrefcount(x), sys.getrefcount(y)
        for _ in range(1000):
            self.assertEqual(hook.run_by("take", add, x, y), 3000)
            self.assertIsNone(hook.run_by("clear", use, x, y))
            self.assertEqual(hook.run_by("swap", add, x, y), (2000, 1000))
            for name in "no slot", "negative slot":
                self.assertRaisesRegex(RuntimeError, "slot .* of a frame with 2", hook.run_by, name, add, x, y)
        self.assertEqual((sys.getrefcount(x), sys.getrefcount(y)), counts)

    def test_what_frames_see(self):
        def who():
            return sys._getframe().f_code.co_name, sys._getframe(1).f_code.co_name, sorted(locals())

        def caller(a):
            b = 1
            return who(), sys._getframe().f_lineno, sorted(locals()), a, b

        self.assertEqual(run(caller, 3)[0], caller(3))
        # Within the callback the frame cannot be seen: the caller's is the last.
        above = []

        def callback(code, slots, flags):
            above.append(sys._getframe(1).f_code.co_name)
            return NotImplemented

        hook.run(callback, caller, 3)
        self.assertEqual(above[1], "caller")

    def test_getitem_that_is_specialized(self):
        class Items:
            def __getitem__(self, key):
                return key

        def read(items):
            return items[1]

        items = Items()
        for _ in range(100):
            read(items)
        _, names = run(read, items)
        seen = sys.version_info >= (3, 11, 4)
        self.assertEqual(names, ["read", "__getitem__"] if seen else ["read"])
        # Warmed under the hook.
        fresh = types.FunctionType(read.__code__.replace(co_name="fresh"), {})
        _, names = run(lambda: [fresh(items) for _ in range(100)])
        self.assertEqual(names.count("fresh"), 100)
        (self.assertEqual if seen else self.assertLess)(names.count("__getitem__"), 100)


class Errors(HookTest):
    def test_errors_of_the_callback(self):
        def fails():
            return 1

        def catches():
            try:
                return fails()
            except KeyError as error:
                return "caught", error.args, sys.exc_info()[0]

        self.assertEqual(run(catches, fails=KeyError(3))[0], ("caught", (3,), KeyError))
        self.assertEqual(sys.exc_info(), (None, None, None))
        try:
            run(lambda: fails(), fails=KeyError(4))
        except KeyError as error:
            names = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
        self.assertEqual(names, ["test_errors_of_the_callback", "run", "<lambda>", "__call__"])
        expected = {
            "exception": (RuntimeError, "thrown by C++"), "memory": (MemoryError, ""),
            "number": (RuntimeError, "unknown type"), "python": (KeyError, "by Python"),
            "null": (SystemError, "returned NULL without setting an exception"),
            "value and exception": (SystemError, "returned a result with an exception set"),
        }
        for name, (kind, text) in expected.items():
            self.assertRaisesRegex(kind, text, hook.run_by, name, fails)
            self.assertEqual(outcome(hook.run_by, name, fails)[0], kind.__name__)
        with self.assertRaises(SystemError) as caught:
            hook.run_by("value and exception", fails)
        self.assertIsInstance(caught.exception.__cause__, KeyError)

    def test_tracebacks_of_plain_frames(self):
        def divide(x):
            return 1 / x

        def middle(x):
            try:
                return divide(x)
            except ZeroDivisionError as error:
                raise ValueError("middle") from error

        def shown():
            try:
                middle(0)
            except ValueError:
                return traceback.format_exc()

        self.assertEqual(run(shown)[0], shown())

    def test_interrupts(self):
        def interrupted():
            try:
                signal.raise_signal(signal.SIGINT)
                for _ in range(100):
                    len("")
            except KeyboardInterrupt:
                return "interrupted"

        self.assertEqual(run(interrupted)[0], "interrupted")

        def callback(code, slots, flags):
            signal.raise_signal(signal.SIGINT)
            return NotImplemented

        with self.assertRaises(KeyboardInterrupt):
            hook.run(callback, interrupted.__get__(1).__func__)
        # Handlers are Python functions, which go through the hook at any call.
        hits = []

        def handler(number, frame):
            hits.append(frame.f_code.co_name)

        def work():
            for _ in range(10):
                signal.raise_signal(signal.SIGALRM)
                leaf()
            return len(hits)

        def leaf():
            return 1

        old = signal.signal(signal.SIGALRM, handler)
        try:
            count, names = run(work)
        finally:
            signal.signal(signal.SIGALRM, old)
        self.assertEqual((count, names.count("handler")), (10, 10))


class Scopes(HookTest):
    def test_scopes_within_scopes(self):
        outer, inner = Recorder(), Recorder(leaf=2)

        def leaf():
            return 1

        def nested():
            return leaf(), hook.run(inner, lambda: (leaf(), hook.run_paused(paused))), leaf()

        def paused():
            self.assertFalse(hook.active())
            self.assertFalse(foreign.any_set())
            # The innermost scope decides.
            return leaf(), hook.run(inner, leaf), hook.run_paused(leaf)

        self.assertEqual(hook.run(outer, nested), (1, (2, (1, 2, 1)), 1))
        self.assertEqual(outer.names(), ["nested", "leaf", "leaf"])
        self.assertEqual(inner.names(), ["<lambda>", "leaf", "leaf"])
        self.assertEqual(hook.run_paused(leaf), 1)
        for wrong in ZeroDivisionError("leaf"), KeyboardInterrupt():
            with self.assertRaises(type(wrong)):
                hook.run(Recorder(leaf=wrong), nested)
            self.assertFalse(foreign.any_set())

    def test_callback_that_goes_through_the_hook(self):
        seen = []

        def callback(code, slots, flags):
            seen.append(code.co_name)
            return hook.run(Recorder(helper=5), helper) if code.co_name == "start" else NotImplemented

        def helper():
            return 1

        def start():
            return 2

        self.assertEqual(hook.run(callback, lambda: start() + helper()), 6)
        self.assertEqual(seen, ["<lambda>", "start", "helper"])

    def test_threads(self):
        def work(name, n):
            return [step(name, i) for i in range(n)]

        def step(name, i):
            if i % 50 == 0:
                time.sleep(0.0005)
            return name, i

        def thread(name):
            recorder = Recorder()
            if name % 2:
                for _ in range(5):
                    results.append(hook.run(recorder, work, name, 300) == [(name, i) for i in range(300)])
            else:
                results.append(work(name, 1500) == [(name, i) for i in range(1500)])
            calls[name] = {slots[0] for kind, slots, _ in recorder.frames if kind == "step"}, len(recorder.frames)

        results, calls = [], {}
        old = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        try:
            threads = [threading.Thread(target=thread, args=(name,)) for name in range(6)]
            [each.start() for each in threads]
            [each.join() for each in threads]
        finally:
            sys.setswitchinterval(old)
        self.assertTrue(all(results) and len(results) == 18)
        self.assertEqual(calls, {name: ({name}, 5 * 302) if name % 2 else (set(), 0) for name in range(6)})

    def test_tracing(self):
        def leaf(x):
            return x + 1

        def work():
            try:
                leaf("")
            except TypeError:
                pass
            return leaf(1)

        def traced(set_tracer, function):
            events = []

            def tracer(frame, event, arg):
                if frame.f_code in (leaf.__code__, work.__code__):
                    events.append((frame.f_code.co_name, event, frame.f_lineno))
                return tracer

            set_tracer(tracer)
            try:
                value = function()
            finally:
                set_tracer(None)
            return value, events

        for set_tracer in sys.settrace, sys.setprofile:
            plain = traced(set_tracer, work)
            (result, names) = run(traced, set_tracer, work)
            self.assertEqual(result, plain)
            self.assertGreater(len(plain[1]), 3)
            self.assertEqual(names, ["traced"])
            recorder = Recorder(leaf=5)
            self.assertEqual(traced(set_tracer, lambda: hook.run(recorder, work)), plain)
            self.assertEqual(recorder.frames, [])
        self.assertEqual(run(work, leaf=5)[0], 5)

    def test_fork(self):
        out = script("""
            import frame_hook_module as hook, foreign_hook as foreign, os, threading, time
            def leaf():
                return 1
            def callback(code, slots, flags):
                return 7 if code.co_name == "leaf" else NotImplemented
            def child(function, expected):
                process = os.fork()
                if process == 0:
                    os._exit(0 if function() == expected else 1)
                return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
            # Within a scope; the scope goes on in both.
            print(hook.run(callback, child, lambda: leaf(), 7), hook.run(callback, leaf), leaf())
            # Another thread has a scope, which the child does not have.
            stop, ready = threading.Event(), threading.Event()
            def hold():
                ready.set()
                stop.wait()
            thread = threading.Thread(target=lambda: hook.run(callback, hold))
            thread.start()
            ready.wait()
            def look():
                before = foreign.any_set()
                return before, leaf(), hook.run(callback, lambda: (leaf(), hook.installed())), foreign.any_set()
            print(foreign.any_set(), child(look, (False, 1, (7, True), False)))
            # Both.
            print(hook.run(callback, child, lambda: (leaf(), hook.run_paused(foreign.any_set)), (7, False)))
            stop.set()
            thread.join()
            print(foreign.any_set())
            """)
        self.assertEqual(out.split(), "0 7 1 True 0 0 False".split())

    def test_subinterpreters(self):
        out = script("""
            import _xxsubinterpreters as interpreters, frame_hook_module as hook
            refused = '''if True:
                import frame_hook_module as hook
                def leaf():
                    return 1
                for call in (lambda: hook.run(print, leaf), lambda: hook.begin(print),
                             lambda: hook.set_data(leaf.__code__, 1)):
                    try:
                        call()
                    except RuntimeError as error:
                        print(error, flush=True)
                print(leaf(), hook.active(), flush=True)
                '''
            other = interpreters.create()
            interpreters.run_string(other, refused)
            seen = []
            def callback(code, slots, flags):
                seen.append(code.co_name)
                return NotImplemented
            def main():
                interpreters.run_string(other, "def inner():\\n    return 1\\nprint(inner(), flush=True)")
                return leaf()
            def leaf():
                return 2
            print(hook.run(callback, main), seen, flush=True)
            interpreters.destroy(other)
            """)
        refusal = "capture works in the main interpreter only"
        self.assertEqual(out.splitlines(), [refusal] * 3 + ["1 False", "1", "2 ['main', 'leaf']"])


class ForeignHooks(HookTest):
    def load(self, name):
        """Another hook, in a file with this name."""
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        path = os.path.join(folder, name)
        shutil.copy(foreign.__file__, path)
        loader = importlib.machinery.ExtensionFileLoader("foreign_hook", path)
        module = importlib.util.module_from_spec(importlib.util.spec_from_loader("foreign_hook", loader))
        loader.exec_module(module)
        return module

    def leaf(self):
        return 1

    def test_chained(self):
        for calls_former in True, False:
            foreign.install(calls_former)
            try:
                before = foreign.count()
                result, names = run(lambda: (self.leaf(), hook.installed(), foreign.is_set()), leaf=5)
                self.assertEqual((result, names), ((5, True, False), ["<lambda>", "leaf"]))
                self.assertTrue(foreign.is_set())
                self.assertIn("foreign_hook.so", hook.other_hook())
                self.assertGreaterEqual(foreign.count(), before + 2)
                self.assertEqual(hook.run_paused(lambda: self.leaf()), 1)
                # Deep recursion does not end below the other hook's own depth.
                self.assertEqual(run(recursion, 500)[0], 500)
            finally:
                foreign.remove()
            self.assertFalse(foreign.any_set())

    def test_set_over_ours_and_left(self):
        def start():
            foreign.install()
            return self.leaf()

        result, names = run(start, leaf=5)
        self.assertEqual((result, names), (5, ["start", "leaf"]))
        try:
            self.assertTrue(foreign.is_set())
            self.assertEqual(self.leaf(), 1)
            # It calls ours, so scopes work through it, and leave it alone.
            for _ in range(3):
                result, names = run(lambda: (self.leaf(), foreign.is_set()), leaf=5)
                self.assertEqual((result, names), ((5, True), ["<lambda>", "leaf"]))
                self.assertTrue(foreign.is_set())
            self.assertEqual(self.leaf(), 1)
        finally:
            foreign.remove()
        # It has put ours back, without a scope.
        self.assertTrue(hook.installed())
        self.assertEqual(self.leaf(), 1)
        self.assertEqual(run(self.leaf, leaf=5), (5, ["leaf"]))

    def test_set_over_ours_without_calling_it(self):
        def start():
            foreign.install(False)
            return self.leaf()

        self.assertEqual(run(start, leaf=5)[0], 1)
        try:
            self.assertTrue(foreign.is_set())
            # Now it is there before.
            self.assertEqual(run(lambda: (self.leaf(), hook.installed()), leaf=5)[0], (5, True))
            self.assertTrue(foreign.is_set())
        finally:
            foreign.clear()

    def test_taken_away(self):
        def start():
            foreign.clear()
            return self.leaf()

        self.assertEqual(run(start, leaf=5)[0], 1)
        self.assertEqual(run(self.leaf, leaf=5)[0], 5)

    def test_set_again_over_ours(self):
        # Its own former hook is ours then, and ours has it as the former: a circle.
        foreign.install()

        def start():
            foreign.install()
            return self.leaf(), [self.leaf() for _ in range(3)], list(x for x in "ab")

        try:
            result, names = run(start)
            self.assertEqual(result, (1, [1, 1, 1], ["a", "b"]))
            self.assertEqual(self.leaf(), 1)
            self.assertEqual(run(self.leaf, leaf=5), (5, ["leaf"]))
            self.assertEqual(self.leaf(), 1)
        finally:
            foreign.clear()

    def test_two_others(self):
        second = self.load("second.so")
        foreign.install()
        try:
            def start():
                second.install()
                return self.leaf()

            self.assertEqual(run(start, leaf=5)[0], 5)
            self.assertTrue(second.is_set())
            self.assertEqual(run(self.leaf, leaf=5), (5, ["leaf"]))
            self.assertTrue(second.is_set())
            second.remove()
            self.assertTrue(hook.installed())
            self.assertEqual(run(self.leaf, leaf=5), (5, ["leaf"]))
            self.assertTrue(foreign.is_set())
        finally:
            foreign.clear()

    def test_debugger(self):
        debugger = self.load("pydevd_frame_evaluator.so")
        debugger.install()
        try:
            with self.assertRaisesRegex(hook.FrameHookError, "debugger.*pydevd_frame_evaluator.so"):
                run(self.leaf)
            self.assertTrue(debugger.is_set())
            self.assertEqual(self.leaf(), 1)
        finally:
            debugger.remove()
        self.assertEqual(run(self.leaf, leaf=5)[0], 5)


if __name__ == "__main__":
    unittest.main()
