# expect: (3, 32, -10, 1, 26)
def f(x: int) -> int:
    if x > 10:
        if x > 20:
            return 3
        x = x + 1
    else:
        if x < 0:
            return 1
    y = x * 2
    if y > 24:
        return y
    return -y

def main():
    return f(25), f(15), f(5), f(-4), f(12)
