"""The frame hook at the limits: deep recursion, the end of the interpreter."""

import functools
import os
import sys
import textwrap
import threading
import time
import unittest

import foreign_hook as foreign
import frame_hook_module as hook
from hook_cases import HookTest, outcome, recursion, run, script


class Depth(HookTest):
    @classmethod
    def setUpClass(cls):
        cls.limit = sys.getrecursionlimit()

    def tearDown(self):
        sys.setrecursionlimit(self.limit)
        super().tearDown()

    def test_deep_recursion(self):
        def leaf():
            return 1

        sys.setrecursionlimit(250_000)
        for depth in 50_000, 200_000:
            before = hook.plain_calls()
            self.assertEqual(hook.run_by("plain", recursion, depth), depth)
            seen = hook.plain_calls() - before
            # Half of the stack goes through the hook, and the hook is there again afterwards.
            self.assertGreater(seen, 2000)
            self.assertLess(seen, 50_000)
            self.assertEqual(run(lambda: (recursion(60_000), leaf()), leaf=3, recursion=4)[0], (4, 3))

        def twice():
            return recursion(60_000), hook.installed(), leaf()

        before = hook.plain_calls()
        self.assertEqual(hook.run_by("plain", twice), (60_000, True, 1))

        def fails(n):
            return fails(n - 1) if n else 1 / 0

        self.assertRaises(ZeroDivisionError, hook.run_by, "plain", fails, 60_000)
        self.assertFalse(foreign.any_set())

    def test_call_that_the_limit_forbids(self):
        def down(count):
            count[0] += 1
            down(count)

        sys.setrecursionlimit(500)
        count, before = [0], hook.plain_calls()
        self.assertRaises(RecursionError, hook.run_by, "plain", down, count)
        self.assertGreater(count[0], 400)
        self.assertEqual(hook.plain_calls() - before, count[0])

    def test_deep_recursion_in_threads(self):
        sys.setrecursionlimit(100_000)
        for size in 0, 64 << 10, 256 << 10, 600 << 10, 2 << 20, 64 << 20:
            results = []
            threading.stack_size(size)
            try:
                thread = threading.Thread(target=lambda: results.append(hook.run_by("plain", recursion, 50_000)))
                thread.start()
            finally:
                threading.stack_size(0)
            thread.join()
            self.assertEqual(results, [50_000], size)

    def test_deep_recursion_beside_a_scope(self):
        """A thread without a scope has the hook, too, if another has one; so has a pause."""
        sys.setrecursionlimit(100_000)
        stop, ready, results = threading.Event(), threading.Event(), []

        def hold():
            ready.set()
            stop.wait()
            return leaf()

        def leaf():
            return 1

        thread = threading.Thread(target=lambda: results.append(run(hold, leaf=5)[0]))
        thread.start()
        ready.wait()
        self.assertTrue(hook.installed())
        self.assertEqual(recursion(50_000), 50_000)
        self.assertTrue(hook.installed())
        self.assertEqual(hook.run_by("plain", hook.run_paused, recursion, 50_000), 50_000)
        self.assertEqual(hook.run_by("plain", recursion, 50_000), 50_000)
        self.assertTrue(hook.installed())
        stop.set()
        thread.join()
        self.assertEqual(results, [5])

    def test_scope_far_down(self):
        sys.setrecursionlimit(100_000)

        def down(n):
            return run(lambda: recursion(30_000), recursion=3) if n == 0 else down(n - 1)

        self.assertEqual(hook.run_by("plain", down, 50_000), (30_000, []))
        # Without the hook on the way down no C stack is used, so it works there.
        self.assertEqual(down(50_000), (3, ["<lambda>", "recursion"]))

    def test_limits(self):
        """Depth and text of RecursionError are those of plain Python."""
        depth = 0

        def function():
            nonlocal depth
            depth += 1
            function()

        class Object:
            def __getattr__(self, name):
                nonlocal depth
                depth += 1
                return getattr(self, name + "x")

            def __call__(self):
                nonlocal depth
                depth += 1
                return self()

            @property
            def value(self):
                nonlocal depth
                depth += 1
                return self.value

            def __eq__(self, other):
                nonlocal depth
                depth += 1
                return self == other

        def mapped(_=0):
            nonlocal depth
            depth += 1
            return list(map(mapped, [1]))

        def generator():
            nonlocal depth
            depth += 1
            yield from generator()

        def comprehension():
            nonlocal depth
            depth += 1
            return [comprehension() for _ in range(1)]

        def keyed(*args, **named):
            nonlocal depth
            depth += 1
            return keyed(*args, **named)

        class Made:
            def __init__(self):
                nonlocal depth
                depth += 1
                Made()

        def caught():
            nonlocal depth
            depth += 1
            try:
                return caught()
            finally:
                depth += 1000

        cases = [function, lambda: Object().name, Object(), lambda: Object().value, lambda: Object() == 1, mapped,
                 lambda: next(generator()), comprehension, lambda: keyed(1, a=2), Made, caught]
        # From one C function each, as the hook's scope is.
        base = functools.partial(hook.run_paused)
        for limit in 300, 1000, 3000:
            sys.setrecursionlimit(limit)
            for number, case in enumerate(cases):
                outcome(hook.run_paused, case)  # the interpreter specializes instructions, which count otherwise
                depth = 0
                plain = (outcome(hook.run_paused, case), depth)
                depth = 0
                hooked = (outcome(hook.run_by, "plain", case), depth)
                self.assertEqual(plain[0][0], "RecursionError")
                self.assertEqual(hooked, plain, (limit, number))

    def test_remaining_stack(self):
        whole = hook.remaining_stack()
        self.assertGreater(whole, 1 << 20)
        low = []

        def down(n, _=0):
            return list(map(lambda _: down(n - 1), [1])) if n else low.append(hook.remaining_stack())

        down(100)
        self.assertLess(low[0], whole - 100 * 200)
        sizes = []
        threading.stack_size(1 << 20)
        try:
            thread = threading.Thread(target=lambda: sizes.append(hook.remaining_stack()))
            thread.start()
        finally:
            threading.stack_size(0)
        thread.join()
        self.assertTrue((1 << 20) - (1 << 16) < sizes[0] <= 1 << 20)


class Shutdown(HookTest):
    COMMON = """
        import atexit, frame_hook_module as hook, os, sys, threading, time
        def callback(code, slots, flags):
            return NotImplemented
        def leaf(x):
            return x
        class Late:
            def __del__(self):
                leaf(1)
        sys.late = Late()
        """

    def ends(self, text, **more):
        return script(textwrap.dedent(self.COMMON) + textwrap.dedent(text), **more)

    def test_open_scope(self):
        self.ends("hook.begin(callback); atexit.register(leaf, 1); late = Late(); leaf(2)")

    def test_exit_within_a_scope(self):
        self.ends("hook.run(callback, lambda: (leaf(1), sys.exit(0)))")

    def test_daemon_threads(self):
        for _ in range(15):
            self.ends("""
                def spin():
                    while True:
                        leaf(1)
                        hook.run_paused(leaf, 2)
                        if leaf(0): break
                def sleep():
                    while True:
                        time.sleep(0.001)
                        leaf(1)
                for _ in range(2):
                    threading.Thread(target=lambda: hook.run_by("plain", spin), daemon=True).start()
                    threading.Thread(target=lambda: hook.run(callback, sleep), daemon=True).start()
                time.sleep(0.02)
                """)

    def test_data_of_code(self):
        self.ends("""
            hook.set_data(leaf.__code__, Late())
            hook.set_data(Late.__del__.__code__, leaf.__code__)
            hook.set_data(os.path.join.__code__, Late())
            hook.set_data(callback.__code__, callback)
            """)


if __name__ == "__main__":
    unittest.main()
