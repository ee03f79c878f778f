"""Code that goes on in the middle of a function: capture/resume/."""

import collections
import copy
import gc
import os
import random
import sys
import types
import unittest
import weakref

import resume_module as resume
import resume_programs as programs
import resume_samples as samples
from bytecode_test import all_codes, changed, library_codes, made

BytecodeError = resume.BytecodeError
SEED = int(os.environ.get("SEED", "1"))


def probe(expected):
    """Whether variables of the caller are bound as expected."""
    variables = sys._getframe(1).f_locals
    return all((name in variables) == bound for name, bound in expected.items())


def lines_of(trace):
    """The names and lines of a traceback. One function that consists of several pieces counts once."""
    lines = []
    while trace:
        line = (trace.tb_frame.f_code.co_qualname, trace.tb_lineno)
        if lines and lines[-1][0] == line[0]:
            lines.pop()
        lines.append(line)
        trace = trace.tb_next
    return lines


def outcome(function, args):
    """The result or error of a call and its arguments afterwards, as something that can be compared."""
    args = copy.deepcopy(args)
    try:
        result = "value", repr(function(*args))
    except Exception as error:
        chain = []
        while error is not None:
            trace = error.__traceback__.tb_next if not chain else error.__traceback__
            chain.append((type(error), str(error), lines_of(trace), repr(error.__cause__)))
            error = error.__context__
        result = "error", chain
    return result, repr(args), sys.exc_info()


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

    def compare(self, function, calls, target, code, about):
        """Runs with `target` (function or code within it) replaced by the code."""
        if isinstance(target, types.CodeType):
            code = changed(function.__code__, lambda each: code if each.replace() == target else each)
            target = function
        for args, expected in calls:
            with InPlace(target, code):
                found = outcome(function, args)
            self.assertEqual(found, expected, about)

    def check(self, function, methods, calls, stride=1):
        expected = [(args, outcome(function, args)) for args in calls]
        targets = [function, *samples.INNER.get(function, ())]
        count = 0
        for target in targets:
            for code in all_codes(target.__code__):
                if not splittable(code):
                    continue
                base = code.replace()
                whole = code is target.__code__
                offset = count % stride
                indices = range(offset, len(resume.kinds(code)), stride)
                for index, breaks, new, _ in splits(code, methods, indices):
                    about = f"{code.co_qualname}: {'break' if breaks else 'resume'} at {index} " \
                            f"{resume.names(code)[index]}"
                    if whole:
                        self.compare(function, expected, target, new, about)
                    else:
                        replaced = changed(target.__code__, lambda each: new if each == base else each)
                        self.compare(function, expected, target, replaced, about)
                    count += 1
        return count

    def test_every_instruction(self):
        total = 0
        for function, methods, *calls in samples.SAMPLES:
            with self.subTest(function.__name__):
                count = self.check(function, False, calls)
                if methods:
                    count += self.check(function, True, calls)
                total += count
        print(f"\n{total} splits", file=sys.stderr)
        self.assertGreater(total, 6000)

    def test_big_functions(self):
        self.assertGreater(self.check(samples.big(7), False, [tuple(range(300)), (*range(305),)], 7), 300)
        self.assertGreater(self.check(samples.many_cells(), False, [(1, 2)], 5), 300)

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
                constants = tuple(inner if c is continuation else c for c in new.co_consts)
                self.assertNotEqual(constants, new.co_consts)
                new = new.replace(co_consts=constants)
                depth += more
        return new, about, depth

    def test_random_programs(self):
        chance = random.Random(SEED)
        counts = collections.Counter()
        for number in range(int(os.environ.get("PROGRAMS", "2500"))):
            source = programs.write(chance)
            function = made(source, handled=samples.handled, Manager=samples.Manager)
            calls = [(args, outcome(function, args)) for args in ((0, 3), (2, 1))]
            codes = [code for code in all_codes(function.__code__) if splittable(code)]
            for _ in range(6):
                code = chance.choice(codes)
                index, breaks = chance.randrange(len(resume.kinds(code))), chance.random() < 0.5
                found = resume.split(code, index, breaks, False, probe, chance.random() < 0.5)
                if not found:
                    counts["skipped"] += 1
                    continue
                counts[resume.names(code)[index][0]] += 1
                base = code.replace()
                new = changed(function.__code__, lambda each: found[0] if each == base else each)
                for args, expected in calls:
                    about = f"program {number}, {code.co_qualname}, {'break' if breaks else 'resume'} at {index}\n" \
                            + source
                    self.assertEqual(outcome(with_code(function, new), args), expected, about)
            code, about, _ = self.chained(function.__code__, len(resume.kinds(function.__code__)), chance, 3)
            if code:
                counts["chains"] += 1
                for args, expected in calls:
                    self.assertEqual(outcome(with_code(function, code), args), expected,
                                     f"program {number}, {about}\n{source}")
        print(f"\n{dict(counts)}", file=sys.stderr)
        self.assertGreater(len(counts), 60)


if __name__ == "__main__":
    unittest.main()
