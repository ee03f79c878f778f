# expect: (tensor([13.]), tensor([14.]), 17, 6, 9)
@torch.jit.interface
class I(object):
    def one(self, x: torch.Tensor) -> torch.Tensor:
        pass
    def two(self, x: int, y: int) -> int:
        pass
class A(object):
    def __init__(self):
        self.n = 5
    def one(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.n
    def two(self, x: int, y: int) -> int:
        return x + y
class B(object):
    def __init__(self):
        pass
    def one(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2
    def two(self, x: int, y: int) -> int:
        return x * y
def use(i: I, x: torch.Tensor) -> torch.Tensor:
    return i.one(x) + i.two(3, 4)
def pick(f: bool) -> I:
    if f:
        return torch.jit.annotate(I, A())
    return torch.jit.annotate(I, B())
def main():
    l: List[I] = [A(), B()]
    s = 0
    for i in l:
        s += i.two(2, 5)
    return use(A(), torch.ones(1)), use(B(), torch.ones(1)), s, pick(True).two(3, 3), pick(False).two(3, 3)
