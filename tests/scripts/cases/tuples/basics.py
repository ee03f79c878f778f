# expect: (1, 2.5, ('x', 2.5), 3, 'x', 1, 6, (1,))
def swap(a: int, b: str) -> Tuple[str, int]:
    return b, a

def main():
    t = (1, 'x', 2.5)
    a, b, c = t
    s, i = swap(a, b)
    (p, q), r = (1, 2), 3
    return t[0], t[-1], t[1:], len(t), s, i, p + q + r, (1,)
