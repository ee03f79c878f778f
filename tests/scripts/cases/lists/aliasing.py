# expect: ([1, 2, 3, 99], [1, 2, 3, 99], [1, 2, 3, 99, 7], True, True)
def change(xs: List[int]):
    xs.append(99)

def main():
    xs = [1, 2]
    ys = xs
    ys.append(3)
    change(xs)
    zs = xs[:]
    zs.append(7)
    return xs, ys, zs, xs is ys, xs is not zs
