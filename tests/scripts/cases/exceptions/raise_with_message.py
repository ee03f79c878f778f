# expect: 2
def f(n: int) -> int:
    if n > 3:
        raise ValueError('too big: ' + str(n))
    elif n < 0:
        raise IndexError
    return n
def main():
    return f(2)
