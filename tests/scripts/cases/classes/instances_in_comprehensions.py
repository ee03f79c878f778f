# expect: ([0, 1, 2], 1, 3)
class A:
    def __init__(self, x: int):
        self.x = x
def mk(x: int) -> A:
    return A(x)
def main():
    l = [mk(i) for i in range(3)]
    d = {i: mk(i) for i in range(2)}
    return [a.x for a in l], d[1].x, len(l)
