# as Python: PyTorch has no lambdas
# expect: (6, 'abab', 11, 3, 101, 5, 3, [0, 2, 4], 3, 7, [0, 2, 4])
def main():
    double = lambda x: x * 2
    k = 10
    shift = lambda x, by=k: x + by
    k = 100
    late = lambda x: x + k
    out: List[int] = []
    keep = lambda x: out.append(x)
    for i in range(3):
        keep(double(i))
    x = 7
    inner = lambda x: double(x) + 1
    return (double(3), double('ab'), shift(1), shift(1, by=2), late(1), (lambda: 5)(), (lambda a, b: a - b)(b=1, a=4), out, inner(1), x,
            [double(i) for i in range(3)])
