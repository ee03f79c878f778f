# expect: (7, 3)
class Point(NamedTuple):
    x: int
    y: int = 3

    def norm(self):
        return {self.x, self.y}

    @property
    def both(self):
        return self.x, self.y


def main():
    p = Point(4)
    return p.x + p.y, p[1]
