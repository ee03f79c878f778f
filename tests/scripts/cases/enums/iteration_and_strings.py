# expect: (3, 'B', ['a', 'bb'], 2)
class S(Enum):
    A = 'a'
    B = 'bb'
def main():
    l = [S.A, S.B]
    n = 0
    for s in l:
        n += len(s.value)
    d = {'x': S.B}
    return n, d['x'].name, [x.value for x in S], len([x for x in S])
