# expect: (3.5, (), 4, (), (1,), ((1, 2), (3,)))
def f(x: Tuple[int, Tuple[str, float]]) -> float:
    a, (b, c) = x
    return a + c
def g() -> Tuple[()]:
    return ()
def h(x: Tuple[int]) -> int:
    return x[0]
def main():
    return f((1, ('a', 2.5))), g(), h((4,)), () , (1,), ((1, 2), (3,))
