# expect: (-1, 5, 5)
@torch.jit.interface
class I(object):
    def one(self) -> int:
        pass
class A(object):
    def __init__(self):
        self.n = 5
    def one(self) -> int:
        return self.n
def use(i: Optional[I]) -> int:
    if i is None:
        return -1
    return i.one()
class Holder:
    def __init__(self, i: I):
        self.i = i
    def go(self) -> int:
        return self.i.one()
def main():
    return use(None), use(A()), Holder(A()).go()
