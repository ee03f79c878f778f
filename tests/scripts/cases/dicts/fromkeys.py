# as Python: PyTorch has no dict.fromkeys
# expect: ({'x': 0.5, 'y': 0.5}, {'a': [1, 2], 'b': [1, 2]}, {0: None, 1: None}, {3: 'q', 4: 'q'})
def main():
    shared = dict.fromkeys(['a', 'b'], [1])
    shared['a'].append(2)
    return dict.fromkeys('xyx', 0.5), shared, dict.fromkeys(range(2)), dict.fromkeys((3, 4), 'q')
