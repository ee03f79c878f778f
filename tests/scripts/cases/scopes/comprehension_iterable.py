# expect: ([4, 3, 6, 14, 2, 14], {'0': 0, '1': 1, '2': 2}, [[3, 5]], 3)
def main():
    v = 3
    a = [v + 1 for v in [v, 2]]
    b = {str(v): v for v in range(v)}
    for i in [3, 1]:
        a += [i * 2 for i in [i, 7]]
    c = [[v for v in [v, 5]] for v in [v]]
    return a, b, c, v
