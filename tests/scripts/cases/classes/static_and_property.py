# expect: 17
class Box:
    def __init__(self, w: int):
        self.w = w

    @property
    def area(self) -> int:
        return self.w * self.w

    @staticmethod
    def unit() -> int:
        return 1

def main():
    b = Box(4)
    return b.area + Box.unit()
