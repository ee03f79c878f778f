# expect: (14, None)
from typing import Optional


def make(x: int) -> Optional[int]:
    if x > 2:
        return None
    return x


def main():
    x = make(0)
    n = 0
    while x is not None:
        n += 1
        for i in range(n):
            if i == 3:
                n += 10
            x = make(i)
    return n, x
