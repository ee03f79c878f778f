# expect: (tensor([0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2,
# expect:         3, 3, 3, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4]), tensor([10, 20, 25, 15, 30, 35,  5,  0, 33,  8, 28, 13,  3, 38, 23, 18, 31,  1,
# expect:         36, 26, 21,  6, 16, 11, 39, 19,  4, 34,  9, 29, 14, 24, 12, 27, 32,  7,
# expect:         17, 37,  2, 22]), tensor([ 2,  7, 12, 17, 22, 27, 32, 37,  4,  9, 14, 19, 24, 29, 34, 39,  1,  6,
# expect:         11, 16, 21, 26, 31, 36,  3,  8, 13, 18, 23, 28, 33, 38,  0,  5, 10, 15,
# expect:         20, 25, 30, 35]), tensor([17,  2, 37, 22,  7, 32, 27, 12,  9, 24, 14, 29, 19, 34,  4, 39, 21,  1,
# expect:         26, 31, 36, 16, 11,  6, 18, 23, 38, 13, 28,  3,  8, 33,  0, 20,  5, 35,
# expect:         10, 30, 15, 25]))
# A sort that is not asked to be stable reports equal elements in the order that PyTorch's does.
def main():
    x = torch.arange(40) * 7 % 5
    values, unstable = torch.sort(x)
    kept = torch.sort(x, stable=True, dim=0, descending=True)[1]
    return values, unstable, kept, torch.argsort(x, descending=True)
