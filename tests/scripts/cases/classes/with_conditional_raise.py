# expect: (2, ['enter', 'exit'])
class C:
    def __init__(self, l: List[str]):
        self.l = l
    def __enter__(self):
        self.l.append('enter')
    def __exit__(self, t: Any, v: Any, tb: Any):
        self.l.append('exit')
def f(n: int, l: List[str]) -> int:
    with C(l):
        if n > 3:
            raise RuntimeError('bad')
        n += 1
    return n
def main():
    l: List[str] = []
    return f(1, l), l
