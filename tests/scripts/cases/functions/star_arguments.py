# expect: (123, 125, 124, 127, 213)
def f(a: int, b: int, c: int = 3) -> int:
    return a * 100 + b * 10 + c
def main():
    t = (1, 2)
    return f(*t), f(*t, 5), f(*(1, 2, 4)), f(*t, c=7), f(b=1, a=2)
