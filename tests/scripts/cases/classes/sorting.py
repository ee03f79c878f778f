# expect: ([3, 2, 1], [4, 9])
class A:
    def __init__(self, v: int):
        self.v = v
    def __lt__(self, o: 'A') -> bool:
        return self.v < o.v
def main():
    l = [A(3), A(1), A(2)]
    l.sort()
    m = sorted([A(9), A(4)])
    l.sort(reverse=True)
    return [x.v for x in l], [x.v for x in m]
