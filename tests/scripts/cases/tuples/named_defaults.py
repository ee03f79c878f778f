# expect: ('def1', 'a2', 2.5, P(x=3, y='def', z=1.0), 2, 'a', 2.5, 'a', 3)
class P(NamedTuple):
    x: int
    y: str = 'def'
    z: float = 2.5
def f(p: P) -> str:
    return p.y + str(p.x)
def main():
    p = P(1)
    q = P(2, 'a')
    r = P(x=3, z=1.0)
    a, b, c = q
    return f(p), f(q), p.z, r, a, b, c, q[1], len(q)
