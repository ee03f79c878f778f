# as Python: PyTorch's format knows only {}
# expect: ('a b a', '    a|1.5  |', 'x: 2.2', '12', '2 1', '7', "3 'up'", 'a   |   2.5|', '{} {5}', 'True', "Point(x=3, y='up')")
class Point(NamedTuple):
    x: int
    y: str


def main():
    p = Point(3, 'up')
    return ('{0} {1} {0}'.format('a', 'b'), '{:>5}|{:<5}|'.format('a', 1.5), '{name}: {value:.1f}'.format(name='x', value=2.25),
            '{0}{k}'.format(1, k=2), '{0[1]} {0[0]}'.format([1, 2]), '{d[key]}'.format(d={'key': 7}), '{0.x} {0.y!r}'.format(p),
            '{:{}}|{:{w}.{p}f}|'.format('a', 4, 2.5, w=6, p=1), '{{}} {{{}}}'.format(5), '{!s:>4}'.format(True), f'{p}')
