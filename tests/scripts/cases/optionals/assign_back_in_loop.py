# expect error: Variable 'x' previously had type 'int'
from typing import Optional


def main():
    x: Optional[int] = 3
    if x is not None:
        for i in range(3):
            y = x + 1
            if y > 3:
                x = None
    return 1
