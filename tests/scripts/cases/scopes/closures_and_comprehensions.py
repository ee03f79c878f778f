# as Python: PyTorch has no lambdas
# expect: (5, 'outer', [[], [0], [5, 0]], [[], [0], [0, 1]], [1.0], [0, 1])
def main():
    x = 5
    v = 'outer'
    squares = [sorted([v * x for v in range(i)], key=lambda v: -v) for i in range(3)]
    nested = [[x for x in range(y)] for y in range(3)]
    floats = [0.0]
    ints = [0]
    for i in range(2):
        floats = [v * 0.5 for v in [1.0 + i]]
        ints = [v for v in range(i + 1)]
    return x, v, squares, nested, floats, ints
