# expect: (0, 4, 9)
def f(x: Optional[Union[int, str]]) -> int:
    if x is None:
        return 0
    elif isinstance(x, str):
        return len(x)
    else:
        return x
def main():
    return f(None), f('abcd'), f(9)
