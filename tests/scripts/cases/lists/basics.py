# expect: ([3, 77, 5, 8], [8, 5, 77, 3], 9, 100, 4, True, 1, 1, [3, 77, 5, 8, 1], [3, 77, 5, 8, 3, 77, 5, 8], False)
def main():
    xs = [3, 1, 2]
    xs.append(5)
    xs.extend([8, 9])
    xs.insert(0, 100)
    popped = xs.pop()
    first = xs.pop(0)
    xs[1] = 77
    xs.remove(2)
    ys = xs.copy()
    ys.reverse()
    return xs, ys, popped, first, len(xs), 77 in xs, xs.index(77), xs.count(3), xs + [1], xs * 2, xs == ys
