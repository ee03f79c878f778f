# expect: (1, 4, 0)
from typing import Optional


def after_break(x: Optional[int], n: int) -> int:
    rounds = 0
    for i in range(n):
        if x is None:
            break
        rounds += 1
        for j in range(2):
            x = None
    return rounds


def after_continue(x: Optional[int], n: int) -> int:
    rounds = 0
    for i in range(n):
        if x is None:
            rounds += 1
            continue
        else:
            rounds += x
        while x is not None:
            x = None
    return rounds


def either(x: Optional[int], n: int) -> int:
    for i in range(n):
        if x is None:
            if n > 3:
                return 0
            else:
                break
        for j in range(2):
            x = None
    return n


def main():
    return after_break(3, 5), after_continue(2, 3), either(1, 4)
