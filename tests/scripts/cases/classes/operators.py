# expect: (2.0, 3.0, True, 2, 3.0)
class Vec:
    def __init__(self, x: float, y: float):
        self.x = x
        self.y = y

    def __add__(self, other: 'Vec') -> 'Vec':
        return Vec(self.x + other.x, self.y + other.y)

    def __mul__(self, k: float) -> 'Vec':
        return Vec(self.x * k, self.y * k)

    def __eq__(self, other: 'Vec') -> bool:
        return self.x == other.x and self.y == other.y

    def __len__(self) -> int:
        return 2

    def __getitem__(self, i: int) -> float:
        return self.x if i == 0 else self.y

def main():
    v = Vec(1.0, 2.0) + Vec(0.5, 0.5) * 2.0
    return v.x, v.y, v == Vec(2.0, 3.0), len(v), v[1]
