# expect: ([0, 1, 2, 2, 3, 4, 10, 7, 4, 1, 0, 4, 8], 10)
def main():
    r: List[int] = []
    for i in range(3):
        r.append(i)
    for i in range(2, 5):
        r.append(i)
    for i in range(10, 0, -3):
        r.append(i)
    for i in range(0, 10, 4):
        r.append(i)
    for i in range(-2):
        r.append(99)
    for i in range(5, 2):
        r.append(99)
    x = 5
    for _ in range(x):
        x += 1
    return r, x
