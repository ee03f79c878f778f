# expect: (6, tensor(0), 0)
def main():
    n = 0
    l = [1, 2, 3]
    while len(l) > 0 and n < 10:
        n += l.pop()
    t = torch.tensor(3)
    while t > 0:
        t -= 1
    x = 5
    while x:
        x -= 1
    return n, t, x
