# expect: ('ab1', ['+a', '+b', 'x', '-b', '+b', 'j', 'x', '-b', '+b', 'x', '-b', '-a', '+a', '+b', 'x', '-b', '+b', 'x', '-b', '+b', 'x', '-b', '-a', '+a', '+b', 'x', '-b', '+b', 'j', 'x', '-b', '+b', 'x', '-b', '-a', '+a', '+b', 'x', '-b', '+b', 'j', 'x', '-b', '+b', 'x', '-b', '-a'], 'end', 48)
class Section:
    def __init__(self, log: List[str], name: str):
        self.log = log
        self.name = name

    def __enter__(self):
        self.log.append('+' + self.name)
        return self.name

    def __exit__(self, kind: Any, value: Any, trace: Any):
        self.log.append('-' + self.name)

def f(n: int, log: List[str]) -> str:
    result = 'end'
    for i in range(4):
        with Section(log, 'a') as a:
            for j in range(3):
                with Section(log, 'b') as b:
                    if i * j == n:
                        result = a + b + str(i)
                    elif j == 1:
                        log.append('j')
                    log.append('x')
    return result

def main():
    log: List[str] = []
    other: List[str] = []
    return f(1, log), log, f(100, other), len(other)
