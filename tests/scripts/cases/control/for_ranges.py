# expect: ([0, 1, 2, 10, 7, 4, 1], 18)
def main():
    out: List[int] = []
    for i in range(3):
        out.append(i)
    for i in range(10, 0, -3):
        out.append(i)
    for i in range(2, 2):
        out.append(-1)
    total = 0
    for i in range(5, 8):
        total += i
    return out, total
