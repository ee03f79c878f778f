# expect: 267
def main():
    n = 0
    for i, x in enumerate([5, 6, 7]):
        n += i * x
    for i, x in enumerate([5, 6, 7], 10):
        n += i * x
    for i, x in enumerate((5, 6), start=2):
        n += i * x
    for t in enumerate([1, 2]):
        n += t[0] + t[1]
    for i, x in enumerate(torch.arange(3)):
        n += i * int(x)
    for i, x in enumerate(range(4)):
        n += x
    for i, (j, x) in enumerate(enumerate([3, 4])):
        n += i * j * x
    return n
