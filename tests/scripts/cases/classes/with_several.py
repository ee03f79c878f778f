# expect: ['entera', 'enterb', 'ab', 'enterc', 'in', 'exitc', 'exitb', 'exita']
class C:
    def __init__(self, l: List[str], n: str):
        self.l = l
        self.n = n
    def __enter__(self):
        self.l.append('enter' + self.n)
        return self.n
    def __exit__(self, t: Any, v: Any, tb: Any):
        self.l.append('exit' + self.n)
def main():
    l: List[str] = []
    with C(l, 'a') as a, C(l, 'b') as b:
        l.append(a + b)
        with C(l, 'c'):
            l.append('in')
    return l
