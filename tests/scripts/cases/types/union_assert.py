# expect: 5
def f(x: Union[int, str]) -> int:
    assert isinstance(x, int)
    return x + 1
def main():
    return f(4)
