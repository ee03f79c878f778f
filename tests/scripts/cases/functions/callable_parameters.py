# as Python: PyTorch has no functions as arguments
# expect: ([2, 3], [2, 4], 6, 'xy', 41, 4, 9)
from typing import Callable


def increment(x: int) -> int:
    return x + 1


def apply_to_all(f: Callable[[int], int], xs: List[int]) -> List[int]:
    return [f(x) for x in xs]


def fold(f: Callable, start, xs):
    for x in xs:
        start = f(start, x)
    return start


def compose(f: Callable, g: Callable, x):
    return f(g(x))


def main():
    limit = 2
    return (apply_to_all(increment, [1, 2]), apply_to_all(lambda x: x * limit, [1, 2]), fold(lambda a, b: a + b, 0, [1, 2, 3]),
            fold(lambda a, b: a + b, '', ['x', 'y']), compose(increment, lambda x: x * 10, 4), compose(abs, increment, -5), fold(max, 0, [3, 9, 4]))
