# expect: (987, 1597, 16, 111)
def main():
    a = 0
    b = 1
    steps = 0
    while b < 1000:
        a, b = b, a + b
        steps += 1
    n = 27
    count = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        count += 1
    return a, b, steps, count
