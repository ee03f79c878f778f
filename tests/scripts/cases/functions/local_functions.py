# as Python: PyTorch can only fork nested functions
# expect: (-1, 27, 22, 46, 'hey!!', 0, 5, 6, 20, 0)
def main():
    base = 10

    def pick(x: int) -> int:
        if x > 5:
            return x + base
        for i in range(x):
            if i * i > x:
                return i
        return -1

    def twice(f, x):
        return f(f(x))

    def optional(x: Optional[int] = None):
        if x is None:
            return 0
        return x + 1

    def shadows(n: int):
        base = n * 2
        return base

    total = 0
    for i in range(3):
        total += pick(i + 4)
    base = 20
    return (pick(2), pick(7), total, twice(pick, 6), twice(lambda s: s + '!', 'hey'), optional(), optional(4), shadows(3), base, optional(x=None))
