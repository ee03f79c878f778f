# expect: (-1, 5, 'ab', 'a', 'none', 16, 0, 2)
def f(x: Optional[int]) -> int:
    if x is None:
        return -1
    return x + 1

def g(x: Optional[str], y: Optional[str]) -> str:
    if x is not None and y is not None:
        return x + y
    elif x is not None:
        return x
    return 'none'

def h(x: Optional[int]) -> int:
    assert x is not None
    return x * 2

def k(x: Optional[List[int]]) -> int:
    return 0 if x is None else len(x)

def main():
    return f(None), f(4), g('a', 'b'), g('a', None), g(None, 'b'), h(8), k(None), k([1, 2])
