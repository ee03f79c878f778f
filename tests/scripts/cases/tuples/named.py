# expect: (11, 2.5, 1, 3)
class Point(NamedTuple):
    x: int
    y: float

def shift(p: Point, by: int) -> Point:
    return Point(p.x + by, p.y)

def main():
    p = Point(1, 2.5)
    q = shift(p, 10)
    return q.x, q.y, p[0], Point(y=1.0, x=3).x
