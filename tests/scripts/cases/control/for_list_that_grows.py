# expect: (6, [1, 2, 3, 10])
def main():
    l = [1, 2, 3]
    n = 0
    for x in l:
        if x == 1:
            l.append(10)
        n += x
    return n, l
