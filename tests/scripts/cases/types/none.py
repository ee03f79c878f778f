# expect: (True, 3, None, 3)
def f() -> None:
    pass
def g(x: None) -> int:
    return 3
def main():
    a = f()
    b = None
    return a is None, g(None), b, g(b)
