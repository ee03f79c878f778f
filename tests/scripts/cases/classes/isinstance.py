# expect: ('A1', 'Bb', 1, 2, 3)
class A:
    def __init__(self):
        self.x = 1
class B:
    def __init__(self):
        self.y = 'b'
def f(o: Union[A, B]) -> str:
    if isinstance(o, A):
        return 'A' + str(o.x)
    return 'B' + o.y
def g(o: Any) -> int:
    if isinstance(o, A):
        return o.x
    elif isinstance(o, (B,)):
        return 2
    return 3
def main():
    return f(A()), f(B()), g(A()), g(B()), g(3)
