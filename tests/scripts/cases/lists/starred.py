# as Python: PyTorch unpacks tuples only
# expect: ([1, 2, 3, 1, 2], [0, 1, 2], [0, 1, 2], ['a', 'b'], 1, [2, 3], ['a', 'b'], 'c', 1, [], 2, [3, 4], 'x', 'y', 4, 9, 2)
def main():
    a = [1, 2]
    first, *rest = [1, 2, 3]
    *most, last = 'abc'
    x, *middle, y = [1, 2]
    out: List[int] = []
    for n, *others in [[1, 2, 3], [4]]:
        out.append(n + len(others))
    c, d = 'xy'
    return [*a, 3, *a], [0, *(1, 2)], [*range(3)], [*'ab'], first, rest, most, last, x, middle, y, out, c, d, max(*[3, 4]), range(1, 10, 2)[-1], range(5)[2]
