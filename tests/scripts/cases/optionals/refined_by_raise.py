# expect: 5
def f(a: Optional[int]) -> int:
    if a is None:
        raise ValueError('no a')
    return a + 2
def main():
    return f(3)
