"""os.fork after the engine has started threads: an error instead of waiting for ever."""

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
import unittest

from testing import Case
from wick import jit, torch


def in_child(function, seconds=60):
    """What the function's text is in a forked process; it dies when it does not end in time."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(seconds)
        try:
            text = str(function())
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(writer, text.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return text


class Fork(Case):
    def setUp(self):
        before = torch.get_num_threads()
        self.addCleanup(torch.set_num_threads, before)
        torch.set_num_threads(2)
        self.large = torch.ones(1 << 20)
        self.expected = float((self.large * 3).sum())  # starts the threads

    def test_many_threads(self):
        text = in_child(lambda: (self.large * 3).sum())
        self.assertIn("RuntimeError: this process was forked after the engine", text)
        self.assertIn("set_num_threads(1)", text)
        self.assertIn("spawn", text)

    def test_one_thread(self):
        def alone():
            torch.set_num_threads(1)
            return float((self.large * 3).sum())

        self.assertEqual(in_child(alone), str(self.expected))

    def test_small_tensors(self):
        self.assertEqual(in_child(lambda: (torch.ones(3) * 2).tolist()), "[2.0, 2.0, 2.0]")

    def test_scripts(self):
        @jit.script
        def f(x):
            return torch.relu(x * 2 + 1) - 1

        for _ in range(3):
            f(torch.ones(4))

        def run():
            for _ in range(50):
                found = f(torch.ones(4))
            return found.tolist()

        self.assertEqual(in_child(run), "[2.0, 2.0, 2.0, 2.0]")

    def test_while_another_thread_runs_lazy_graphs(self):
        ended = []

        def work():
            while not ended:
                y = torch.ones(50, 50, device="lazy")
                (y @ y).sum().item()

        thread = threading.Thread(target=work)
        thread.start()
        try:
            for n in range(10):
                run = lambda: (torch.ones(3, device="lazy") + n).tolist()  # noqa: E731
                self.assertEqual(in_child(run, 20), str([1.0 + n] * 3))
        finally:
            ended.append(True)
            thread.join()

    def test_while_other_threads_compile(self):
        text = """
def f{0}(x: Tensor, n: int) -> Tensor:
    for i in range(n):
        if i % 2 == 0:
            x = torch.relu(x * {0} + i) - torch.tanh(x)
        else:
            x = torch.sigmoid(x) + x.sum()
    return x
"""
        torch.set_num_threads(1)
        numbers = itertools.count()
        ended = []

        def compile_and_run():
            n = next(numbers)
            f = getattr(jit.CompilationUnit(text.format(n)), f"f{n}")
            return [f(torch.ones(3), 2) for _ in range(3)][-1].dim()

        def work():
            while not ended:
                compile_and_run()

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(60):
                self.assertEqual(in_child(compile_and_run, 30), "1")
        finally:
            ended.append(True)
            for thread in threads:
                thread.join()

    def test_functions_that_fork(self):
        unit = jit.CompilationUnit("""
def double(x: Tensor) -> Tensor:
    return x * 2
def both(x: Tensor) -> Tensor:
    a = torch.jit.fork(double, x)
    b = torch.jit.fork(double, x + 1)
    return torch.jit.wait(a) + torch.jit.wait(b)
""")
        for _ in range(50):
            unit.both(torch.ones(2))
            # The threads that ran them may be about to rest.
            self.assertEqual(in_child(lambda: unit.both(torch.ones(2)).tolist(), 20), "[6.0, 6.0]")

    def test_a_thread_that_calls_python_does_not_hold_forks_up(self):
        begun, ended = threading.Event(), threading.Event()

        def hook(gradient):
            begun.set()
            # Needs the lock of Python, and enters the engine again.
            for _ in range(50):
                (torch.ones(3) * 2).sum()
                time.sleep(0.001)
            return gradient

        x = torch.ones(3, requires_grad=True)
        x.register_hook(hook)

        def walk():
            (x * 2).sum().backward()
            ended.set()

        thread = threading.Thread(target=walk)
        thread.start()
        begun.wait()
        begin = time.monotonic()
        self.assertEqual(in_child(lambda: (torch.ones(2) * 2).tolist(), 20), "[2.0, 2.0]")
        self.assertLess(time.monotonic() - begin, 9)
        thread.join()
        self.assertTrue(ended.is_set())

    def test_threads_that_fork_at_once(self):
        found = []

        def work():
            for n in range(10):
                found.append(in_child(lambda: (torch.ones(2) * 2).tolist(), 20))

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, ["[2.0, 2.0]"] * 30)

    def test_what_waits_before_a_fork_ends(self):
        # A thread that must wait for the fork holds a lock that is taken before it.
        script = """
import os, threading, time
held = threading.Lock()
os.register_at_fork(before=held.acquire, after_in_parent=held.release, after_in_child=held.release)
from wick import torch
def work():
    with held:
        for _ in range(100):
            (torch.ones(2) * 2).tolist()
            time.sleep(0.01)
thread = threading.Thread(target=work)
thread.start()
time.sleep(0.1)
child = os.fork()
if child == 0:
    (torch.ones(2) * 2).tolist()
    os._exit(5)
thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100)
        self.assertEqual((done.stdout, done.stderr), ("5\n", ""))

    def test_a_hook_forks(self):
        found = []

        def hook(gradient):
            found.append(in_child(lambda: (gradient * 3).tolist(), 20))

        x = torch.ones(2, requires_grad=True)
        x.register_hook(hook)
        x.sum().backward()
        self.assertEqual(found, ["[3.0, 3.0]"])

    def test_the_parent_goes_on(self):
        in_child(lambda: 1)
        self.assertEqual(float((self.large * 3).sum()), self.expected)

    def test_the_child_ends_as_others_do(self):
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            # Through the handlers of atexit, which wait for threads.
            import ctypes

            ctypes.CDLL(None).exit(7)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 7)


if __name__ == "__main__":
    unittest.main()
