# expect: 4
def g(x: int) -> int:
    return x + 1
def f(fut: torch.jit.Future[int]) -> int:
    return torch.jit.wait(fut)
def main():
    return f(torch.jit.fork(g, 3))
