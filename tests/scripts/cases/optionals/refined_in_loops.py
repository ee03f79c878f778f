# expect: (3, 8)
def f(x: Optional[int]) -> int:
    n = 0
    while n < 3:
        if x is None:
            x = 1
        else:
            x = x + 1
        n += 1
    if x is None:
        return 0
    return x
def main():
    return f(None), f(5)
