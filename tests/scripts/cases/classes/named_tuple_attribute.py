# expect: (2, 'z', 1)
class P(NamedTuple):
    x: int
    y: str
class A:
    def __init__(self, p: P):
        self.p = p
        self.l: List[P] = [p, P(5, 'z')]
def main():
    a = A(P(1, 'q'))
    a.p = P(2, 'w')
    return a.p.x, a.l[1].y, a.l[0].x
