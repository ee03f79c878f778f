# expect: ([], [5, 6])
def main():
    xs = [1, 2, 3, 4, 5]
    del xs[1]
    del xs[-1]
    xs.clear()
    ys = [4, 5, 6]
    del ys[0]
    return xs, ys
