# expect: 1
def f(x: int) -> int:
    if x > 2:
        y = 1
    else:
        raise ValueError('q')
    return y
def main():
    return f(3)
