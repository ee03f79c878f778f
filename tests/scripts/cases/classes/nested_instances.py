# expect: (382, 3)
class B:
    def __init__(self, n: int):
        self.n = n
    def inc(self):
        self.n += 1
class A:
    def __init__(self, b: B):
        self.b = b
        self.bs = [b, B(7)]
        self.d = {'q': B(1)}
    def go(self) -> int:
        self.b.inc()
        for x in self.bs:
            x.inc()
        self.d['q'].inc()
        return self.b.n * 100 + self.bs[1].n * 10 + self.d['q'].n
def main():
    b = B(1)
    a = A(b)
    return a.go(), b.n
