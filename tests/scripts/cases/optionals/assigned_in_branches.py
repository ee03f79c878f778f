# expect: (0, 3, 2, tensor([2., 2.]), tensor([1.]))
def f(x: Optional[int], y: Optional[int]) -> int:
    if x is None:
        if y is None:
            return 0
        else:
            x = y
    return x
def g(x: Optional[torch.Tensor]) -> torch.Tensor:
    if x is None:
        x = torch.ones(2)
    return x + 1
def main():
    return f(None, None), f(None, 3), f(2, None), g(None), g(torch.zeros(1))
