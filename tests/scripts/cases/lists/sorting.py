# expect: ([1, 2, 3], [9.0, 2.5, -1.0], [4, 5, 6], ['apple', 'fig', 'pear'])
def main():
    xs = [3, 1, 2]
    xs.sort()
    ys = [2.5, -1.0, 9.0]
    ys.sort(reverse=True)
    return xs, ys, sorted([5, 4, 6]), sorted(['pear', 'apple', 'fig'])
