# expect: ([1, 2, 4, 5, 7, 8, 10], 8)
def main():
    out: List[int] = []
    for i in range(100):
        if i % 3 == 0:
            continue
        if i > 10:
            break
        out.append(i)
    n = 0
    while True:
        n += 1
        if n == 5:
            continue
        if n > 7:
            break
    return out, n
