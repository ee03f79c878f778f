# expect: (True, False, 'G')
class C(Enum):
    R = 1
    G = 2
class A:
    def __init__(self, c: C):
        self.c = c
    def isr(self) -> bool:
        return self.c == C.R
def main():
    a = A(C.R)
    r = a.isr()
    a.c = C.G
    return r, a.isr(), a.c.name
