# expect: (0, ['enter', 'body', 'after', 'exit', 'end'], 1, ['enter', 'body', 'exit'])
class C:
    def __init__(self, l: List[str]):
        self.l = l
    def __enter__(self):
        self.l.append('enter')
        return self.l
    def __exit__(self, t: Any, v: Any, tb: Any):
        self.l.append('exit')
def f(l: List[str], n: int) -> int:
    with C(l) as k:
        k.append('body')
        if n > 2:
            return 1
        l.append('after')
    l.append('end')
    return 0
def main():
    a: List[str] = []
    x = f(a, 1)
    b: List[str] = []
    y = f(b, 5)
    return x, a, y, b
