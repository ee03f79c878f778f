# expect: ['enter a', 'in a', 'enter b', 'deep', 'exit b', 'exit a', 'enter c', 'enter d', 'both', 'exit d', 'exit c']
class Log:
    def __init__(self, out: List[str], name: str):
        self.out = out
        self.name = name

    def __enter__(self) -> str:
        self.out.append('enter ' + self.name)
        return self.name

    def __exit__(self, type: Any, value: Any, tb: Any) -> None:
        self.out.append('exit ' + self.name)

def main():
    out: List[str] = []
    with Log(out, 'a') as name:
        out.append('in ' + name)
        with Log(out, 'b'):
            out.append('deep')
    with Log(out, 'c'), Log(out, 'd'):
        out.append('both')
    return out
