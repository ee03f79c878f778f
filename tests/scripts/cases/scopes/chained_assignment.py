# expect: (4, 3, 3, [1, 2], [1, 2], 1, 2, (1, 2), [5, 5])
def main():
    a = b = c = 3
    a += 1
    x = y = [1]
    x.append(2)
    (p, q) = r = (1, 2)
    l = [0, 0]
    l[0] = l[1] = 5
    return a, b, c, x, y, p, q, r, l
