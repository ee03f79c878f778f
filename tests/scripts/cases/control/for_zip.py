# expect: ([(1, 'a'), (2, 'b'), (0, 'x'), (1, 'y'), (2, 'z')], 96)
def main():
    r: List[Tuple[int, str]] = []
    for a, b in zip([1, 2, 3], ['a', 'b']):
        r.append((a, b))
    for a, b in zip(range(3), 'xyz'):
        r.append((a, b))
    n = 0
    for i, (a, b) in enumerate(zip([1, 2], [3, 4])):
        n += i * a * b
    for a, (b, c) in zip([1, 2], [(3, 4), (5, 6)]):
        n += a * b * c
    for a, b, c in zip([1], [2], [3]):
        n += a + b + c
    for x in zip([1, 2], [3, 4]):
        n += x[0] + x[1]
    return r, n
