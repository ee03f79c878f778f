# expect: (2, 3, 2, 9, 3, -1, -1, -1)
def f(x: Any) -> int:
    if isinstance(x, int):
        return x + 1
    if isinstance(x, str):
        return len(x)
    if isinstance(x, float):
        return int(x)
    if torch.jit.isinstance(x, List[int]):
        return x[0]
    if isinstance(x, Tensor):
        return int(x.sum())
    return -1
def main():
    return f(1), f('abc'), f(2.7), f([9]), f(torch.ones(3)), f(None), f(True), f((1, 2))
