# expect: (0.0, 20.25)
def main():
    a = 10
    a += 5
    a -= 3
    a *= 2
    a %= 3
    f = 9.0
    f /= 2
    f **= 2
    return a, f
