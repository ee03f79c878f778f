# expect: (['enter', '0', 'exit', 'x', 'enter', 'exit'], ['enter', '0', 'exit', 'x', 'enter', 'exit', 'enter', '2', 'exit', 'x', 'enter', 'exit'])
class C:
    def __init__(self, l: List[str]):
        self.l = l
    def __enter__(self):
        self.l.append('enter')
    def __exit__(self, t: Any, v: Any, tb: Any):
        self.l.append('exit')
def f(n: int) -> List[str]:
    l: List[str] = []
    for i in range(n):
        with C(l):
            if i == 1:
                continue
            if i == 3:
                break
            l.append(str(i))
        l.append('x')
    return l
def main():
    return f(2), f(5)
