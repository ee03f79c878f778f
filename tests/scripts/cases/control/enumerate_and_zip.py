# expect: (['0a', '1b', '5c'], 6.5)
def main():
    out: List[str] = []
    for i, s in enumerate(['a', 'b']):
        out.append(str(i) + s)
    for i, s in enumerate(['c'], 5):
        out.append(str(i) + s)
    total = 0.0
    for x, y in zip([1, 2, 3], [0.5, 1.5]):
        total += x * y
    for i, (x, y) in enumerate(zip([1], [2])):
        total += i + x + y
    return out, total
