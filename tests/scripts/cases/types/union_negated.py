# expect: (3, 5)
def f(x: Union[int, str]) -> int:
    if not isinstance(x, int):
        return len(x)
    return x
def main():
    return f('abc'), f(5)
