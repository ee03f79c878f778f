# expect: ([6, 22, 56], 'ro56')
class A:
    def __init__(self, x: int):
        self._x = x
    @property
    def x(self) -> int:
        return self._x * 2
    @x.setter
    def x(self, v: int):
        self._x = v + 1
    @property
    def ro(self) -> str:
        return 'ro' + str(self.x)
def main():
    a = A(3)
    r = [a.x]
    a.x = 10
    r.append(a.x)
    a.x += 5
    r.append(a.x)
    return r, a.ro
