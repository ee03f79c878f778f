"""Callbacks and helpers of the tests of the frame hook."""

import os
import subprocess
import sys
import textwrap
import unittest

import foreign_hook as foreign
import frame_hook_module as hook

HERE = os.path.dirname(os.path.abspath(hook.__file__))


class Recorder:
    """A callback that keeps the frames it was asked for, and answers some by name."""

    def __init__(self, **answers):
        self.answers, self.frames = answers, []

    def __call__(self, code, slots, flags):
        self.frames.append((code.co_name, slots, flags))
        answer = self.answers.get(code.co_name, NotImplemented)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def names(self):
        return [name for name, *_ in self.frames]


def run(function, *args, **answers):
    """The result within a scope, and the names of the frames that the callback saw."""
    recorder = Recorder(**answers)
    return hook.run(recorder, function, *args), recorder.names()


def outcome(function, *args):
    try:
        return "returned", function(*args)
    except BaseException as error:
        return type(error).__name__, str(error)


def script(text, *args, timeout=120, **environment):
    """Runs a program of its own; what it printed. It must end well and print no error."""
    environment = {**os.environ, "PYTHONPATH": HERE, **environment}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(text), *args], capture_output=True, text=True,
                          timeout=timeout, env=environment)
    if done.returncode or done.stderr:
        raise AssertionError(f"exit {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


class HookTest(unittest.TestCase):
    def setUp(self):
        self.assertFalse(foreign.any_set())

    def tearDown(self):
        self.assertFalse(hook.active())
        self.assertFalse(foreign.any_set())
        hook.reset()


def recursion(n):
    return 0 if n == 0 else 1 + recursion(n - 1)
