# expect: (1.5, 2.5, -1.0)
def f(x: Union[int, float, str]) -> float:
    if isinstance(x, (int, float)):
        if isinstance(x, int):
            return float(x) + 0.5
        return x
    return -1.0
def main():
    return f(1), f(2.5), f('a')
