# expect: (6, -1, -1)
def f(a: Optional[int], b: Optional[int], c: Optional[int]) -> int:
    if a is not None and b is not None and c is not None:
        return a + b + c
    if (a is None or b is None) or c is None:
        return -1
    return a * b * c
def main():
    return f(1, 2, 3), f(None, 2, 3), f(1, 2, None)
