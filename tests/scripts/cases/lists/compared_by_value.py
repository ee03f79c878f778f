# as Python: PyTorch compares lists of numbers and strings only
# expect: (True, True, True, True, True, True, True, True, True, True, True, True, True, True, True, 2, True)
def main():
    return ([[1]] == [[1]], [[1], [2]] != [[1], [3]], [1, 2] < [1, 3], [2] >= [1, 5], (1, 'a') == (1, 'a'), (1, 2) < (1, 3), (1, 'b') > (1, 'a'), {'a': 1, 'b': 2} == {'b': 2, 'a': 1},
            {'a': 1} != {'a': 2}, (1, 2) in [(1, 2)], [1] not in [[2]], 1.0 in [1, 2], True == 1, 0.5 < True, 1 == 1.0 == True, [1, 2, 1].index(1, 1), [(1, 2.5)] == [(1, 2.5)])
