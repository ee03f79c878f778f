# expect: (7, 8)
@torch.jit.unused
def in_python(x: int) -> int:
    with open("/dev/null") as f:
        try:
            return {x: y for y in f} and {1, 2}
        finally:
            print(f"{x!r:>{10}}", end="")
    yield x


@torch.jit.unused
def on_one_line(x: int) -> int: return {x, "}"}


class Counter:
    def __init__(self, start: int):
        self.count = start

    @torch.jit.unused
    def log(self) -> int:
        return len({self.count, 2})

    @torch.jit.unused
    def typed(self, n):
        # type: (int) -> int
        return {n}

    def add(self, n: int) -> int:
        self.count += n
        if self.count > 100:
            return self.log() + self.typed(n)
        return self.count


def main():
    counter = Counter(3)
    n = counter.add(4)
    if n > 100:
        n = in_python(n) + on_one_line(n)
    return n, counter.add(1)
