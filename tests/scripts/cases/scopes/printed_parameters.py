# as Python: keyword parameters without defaults
# expect: ((5, 'd'), (6, 'e'), 1, 3)
def late(a: int, b: int = 2, *, c: List[int], d: str = "d") -> Tuple[int, str]:
    return a + b + len(c), d
class Quiet:
    def __init__(self):
        self.n = 0
    def __enter__(self):
        self.n += 1
    def __exit__(self, a: Any, b: Any, c: Any):
        self.n += 2
def nothing(q: Quiet) -> int:
    with q:
        return 1
def main():
    q = Quiet()
    return late(1, c=[1, 2]), late(1, 5, c=[], d="e"), nothing(q), q.n
