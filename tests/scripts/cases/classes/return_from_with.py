# expect: (2, -1, ['enter', 'exit', 'enter', 'exit'])
class Guard:
    def __init__(self, out: List[str]):
        self.out = out

    def __enter__(self):
        self.out.append('enter')

    def __exit__(self, type: Any, value: Any, tb: Any) -> None:
        self.out.append('exit')

def f(out: List[str], n: int) -> int:
    with Guard(out):
        for i in range(n):
            if i == 2:
                return i
    return -1

def main():
    out: List[str] = []
    a = f(out, 5)
    b = f(out, 1)
    return a, b, out
