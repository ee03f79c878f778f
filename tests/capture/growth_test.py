"""The time of a capture grows with the size of the program, not with its square."""

import gc
import time
import unittest

import wick
import wick.compiler
from wick import torch

X = torch.tensor([1.0, 2.0])


class Part:
    def __init__(self, n):
        self.n = n


def many_attributes(x, parts):
    total = 0
    for part in parts:
        total += part.n
    return x + total


def many_keys(x, table):
    total = 0
    for key in table:
        total += table[key]
    return x + total


def many_objects_as_keys(x, parts):
    seen = {}
    for part in parts:
        seen[part] = len(seen)
    return x + len(seen)


def many_elements_of_a_deque(x, items):
    total = 0
    for n in items:
        total += n
    return x + total


def many_changes(x, lists):
    for each in lists:
        each.append(1)
    return x + len(lists)


def many_reads_through_views(x, items):
    x = x.unsqueeze(1)
    for _ in items:
        x = (x.sum(1, keepdim=True) + (x[:, :1] + x[:1])) * 0.25
    return x * 2 if x.shape[0] > 2 else x


def time_of(function, argument):
    wick.compiler.reset()
    compiled = wick.compile(function)
    gc.collect()
    start = time.process_time()
    compiled(X, argument)
    return time.process_time() - start


class Growth(unittest.TestCase):
    def check(self, function, make, size=1000):
        """Both sizes in turns, so that a busy machine slows both; the quickest of each counts."""
        small, large = make(size), make(8 * size)
        times = [(time_of(function, small), time_of(function, large)) for _ in range(4)]
        ratio = min(t for _, t in times) / min(t for t, _ in times)
        # Eight times the size: a square would be 64, and caches that are too small add to 8.
        self.assertLess(ratio, 40, f"{function.__name__}: {times}")

    def test_attributes(self):
        self.check(many_attributes, lambda n: [Part(i) for i in range(n)])

    def test_keys(self):
        self.check(many_keys, lambda n: {f"k{i}": i for i in range(n)})

    def test_objects_as_keys(self):
        self.check(many_objects_as_keys, lambda n: [Part(i) for i in range(n)])

    def test_changes(self):
        self.check(many_changes, lambda n: [[i] for i in range(n)])

    def test_deques(self):
        import collections

        self.check(many_elements_of_a_deque, lambda n: collections.deque(range(n)))

    def test_views(self):
        self.check(many_reads_through_views, range, 40)

    def test_views_with_open_sizes(self):
        def with_open_sizes(x, items):
            compiled = wick.compile(many_reads_through_views, dynamic=True)
            return [compiled(torch.ones(rows), items) for rows in (2, 3, 4)]

        self.check(with_open_sizes, range, 20)


if __name__ == "__main__":
    unittest.main()
