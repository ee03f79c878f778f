# expect: ([1, 2, 6, 12, 20, 30, 42, 56, 72, 90, 110, 132, 156, 182, 210, 240, 272, 306, 342, 380], 30, 105)
class Accumulator:
    def __init__(self, start: int):
        self.start = start

    def times(self, n: int, by: int = 2) -> int:
        return self.start * n * by

def spread(depth: int) -> int:
    if depth == 0:
        return 1
    return depth

def nested(n: int) -> int:
    f = torch.jit.fork(spread, n)
    g = torch.jit.fork(spread, n + 1)
    return torch.jit.wait(f) * torch.jit.wait(g)

def main():
    a = Accumulator(3)
    futures = [torch.jit.fork(nested, i) for i in range(20)]
    f = torch.jit.fork(a.times, 5)
    g = torch.jit.fork(a.times, 5, by=7)
    return [torch.jit.wait(x) for x in futures], f.wait(), torch.jit.wait(g)
