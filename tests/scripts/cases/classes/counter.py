# expect: (17, 'c:17', 'o:1', True)
class Counter:
    def __init__(self, start: int, name: str = 'c'):
        self.count = start
        self.name = name

    def step(self, by: int) -> int:
        self.count += by
        return self.count

    def describe(self) -> str:
        return self.name + ':' + str(self.count)

def main():
    c = Counter(5)
    c.step(2)
    d = c
    d.step(10)
    other = Counter(1, name='o')
    return c.count, d.describe(), other.describe(), c is d
