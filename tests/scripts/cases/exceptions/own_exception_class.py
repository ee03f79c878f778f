# expect: 1
class MyError(Exception):
    pass
def f(n: int) -> int:
    if n > 10:
        raise MyError('mine')
    return n
def main():
    return f(1)
