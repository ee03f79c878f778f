# as Python: PyTorch assigns to slices of tensors only
# expect: ([1, 9, 9, 9, 4], [0, 2, 0, 4, 0], [1, 7, 2, 3, 8], [1, 4], [1, 3, 5], [1])
def main():
    a = [1, 2, 3, 4]
    a[1:3] = [9, 9, 9]
    b = [1, 2, 3, 4, 5]
    b[::2] = [0, 0, 0]
    c = [1, 2, 3]
    c[1:1] = [7]
    c[10:] = [8]
    d = [1, 2, 3, 4]
    del d[1:3]
    e = [0, 1, 2, 3, 4, 5]
    del e[::2]
    f = [1, 2]
    f[:] = f
    f[-1:] = []
    return a, b, c, d, e, f
