# expect: (7, 5, [1, 2, 3])
def f(x: int) -> int:
    x = x + 1
    for x2 in range(2):
        x = x + x2
    return x

def main():
    x = 5
    y = [x for x in [1, 2, 3]]
    return f(x), x, y
