# expect: (5, 15, 41, 41000)
def f(n: int) -> int:
    s = 0
    for i in range(n):
        j = 0
        while True:
            j += 1
            if j > i:
                break
            if j % 2 == 0:
                continue
            for k in range(j):
                if k == 2:
                    break
                if s > 40:
                    return s * 1000
                s += k + 1
        if i == 6:
            continue
        s += 1
    return s
def main():
    return f(3), f(5), f(8), f(20)
