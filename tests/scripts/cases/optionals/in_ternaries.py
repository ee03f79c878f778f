# expect: (1, 7, 3)
def f(a: Optional[int], b: Optional[int]) -> int:
    return (a if a is not None else 0) + (0 if b is None else b)
def main():
    return f(None, 1), f(3, 4), f(3, None)
