# expect: ((2, 1), 10, tensor([1., 1.]), 'x', [1, 2])
from collections import namedtuple

Pair = Tuple[int, int]
Table = Dict[str, Pair]
Box = namedtuple('Box', ['low', 'high'])
Item = NamedTuple('Item', [('name', str), ('counts', List[int])])

def swap(p: Pair) -> Pair:
    return p[1], p[0]

def total(t: Table) -> int:
    n = 0
    for k, v in t.items():
        n += v[0] * len(k) + v[1]
    return n

def main():
    b = Box(torch.zeros(2), torch.ones(1))
    i = Item('x', [1, 2])
    return swap((1, 2)), total({'ab': (3, 4)}), b.low + b.high, i.name, i.counts
