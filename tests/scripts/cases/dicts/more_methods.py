# expect: ({1: 1.5, 3: 9.0}, {1: 1.5, 2: 2.5, 3: 9.0, 5: 0.5}, {'a': [1, 2, 3]}, {1: 1, 2: 4, 3: 9}, {'k0': 0, 'k1': 1})
def main():
    d = {1: 1.5, 2: 2.5}
    d.setdefault(3, 9.0)
    d.setdefault(1, 100.0)
    e = d.copy()
    e.update({5: 0.5})
    del d[2]
    d2 = {'a': [1, 2]}
    d2['a'].append(3)
    return d, e, d2, {x: x * x for x in [1, 2, 3]}, {'k' + str(i): i for i in range(2)}
