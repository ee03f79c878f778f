"""os.fork after the engine has started threads: an error instead of waiting for ever."""

import os
import signal
import threading
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
