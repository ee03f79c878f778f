# as Python: PyTorch refuses to assign the wider type again from an inner block
# expect: (9, 9, 0, 142, 0, -1, 0, 3, '7', 2, 2, 3, 14)
from typing import List, Optional, Union


def drain(x: Optional[List[int]]) -> int:
    rounds = 0
    while x is not None:
        rounds += len(x)
        if rounds > 5:
            x = None
        else:
            x = [1, 2, 3, 4]
    return rounds


def stop(x: Optional[int]) -> int:
    n = 0
    while x is not None:
        if x > 3:
            if x > 5:
                x = None
                n += 100
            else:
                x = x + 1
        else:
            x = x + 2
            n += 1
        n += 10
    return n


def branches(x: Optional[int], flag: bool) -> int:
    if x is None:
        return -1
    if flag:
        x = None
    return 0 if x is None else x


def union(x: Union[int, str]) -> Union[int, str]:
    if isinstance(x, int):
        if x > 3:
            x = str(x)
        else:
            x = x + 1
    return x


def again(x: Optional[int]) -> int:
    assert x is not None
    n = x
    if n > 2:
        x = None
        if n > 4:
            x = 9
    if x is not None:
        n += x
    return n


def main():
    u = union(7)
    v = union(1)
    return (
        drain([7]),
        drain([1]),
        drain(None),
        stop(1),
        stop(None),
        branches(None, True),
        branches(3, True),
        branches(3, False),
        u,
        v,
        again(1),
        again(3),
        again(5),
    )
