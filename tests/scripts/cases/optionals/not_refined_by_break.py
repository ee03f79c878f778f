# expect error: add
from typing import Optional


def main():
    x: Optional[int] = 3
    y = 0
    for i in range(3):
        if x is None:
            break
        y += x + 1
    return y
