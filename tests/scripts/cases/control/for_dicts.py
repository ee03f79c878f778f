# expect: (['a', 'b', 'a', 'b', 'a1', 'b2', 'a0', 'b1', 'a01', 'b12'], 3)
def main():
    d = {'a': 1, 'b': 2}
    r: List[str] = []
    n = 0
    for k in d:
        r.append(k)
    for k in d.keys():
        r.append(k)
    for v in d.values():
        n += v
    for k, v in d.items():
        r.append(k + str(v))
    for i, k in enumerate(d):
        r.append(k + str(i))
    for i, (k, v) in enumerate(d.items()):
        r.append(k + str(i) + str(v))
    return r, n
