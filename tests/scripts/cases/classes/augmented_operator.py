# expect: (6, 6)
class V:
    def __init__(self, x: int):
        self.x = x
    def __iadd__(self, o: int) -> 'V':
        self.x += o
        return self
    def __add__(self, o: int) -> 'V':
        return V(self.x + 100)
    def __mul__(self, o: int) -> 'V':
        return V(self.x * o)
def main():
    a = V(1)
    b = a
    a += 5
    return a.x, b.x
