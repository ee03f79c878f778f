# expect: ([[1, 7], [9, 4]], (1, [8, 6]), [1, 7])
class A:
    def __init__(self):
        self.l = [[1, 2], [3, 4]]
        self.t = (1, [5, 6])
    def get(self) -> List[List[int]]:
        return self.l
def main():
    a = A()
    a.l[1][0] = 9
    a.get()[0][1] += 5
    a.t[1][0] = 8
    x = a.get()[0]
    return a.l, a.t, x
