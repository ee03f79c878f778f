# expect: (1, 1, {'a': 1, 'b': None, 'c': 5, 'd': None}, 3, None, 9)
def main():
    d: Dict[str, Optional[int]] = {'a': 1, 'b': None}
    d['c'] = 5
    d['d'] = None
    v = d.get('a')
    r = -1
    w = d['a']
    if w is not None:
        r = w
    e: Dict[str, int] = {'z': 3}
    q = e.get('z')
    q2 = e.get('y')
    q3 = e.get('y', 9)
    return v, r, d, q, q2, q3
