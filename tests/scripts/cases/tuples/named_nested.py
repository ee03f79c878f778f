# expect: (Outer(i=Inner(a=1), l=[Inner(a=2), Inner(a=3)], o=None), 6, True)
class Inner(NamedTuple):
    a: int
class Outer(NamedTuple):
    i: Inner
    l: List[Inner]
    o: Optional[Inner] = None
def main():
    o = Outer(Inner(1), [Inner(2), Inner(3)])
    s = 0
    for k in o.l:
        s += k.a
    return o, o.i.a + s, o.o is None
