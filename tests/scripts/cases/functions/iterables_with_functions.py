# as Python: PyTorch has no keys, starts and defaults
# expect: (['fig', 'pear', 'kiwi', 'apple'], ['pear', 'kiwi', 'fig', 'apple'], [3, 2, 1], [(1, 'z'), (2, 'b'), (2, 'a')], [3, 2, 1], 'fig', 'pear', 'a', 'pear', 1.5, (1, 'b'), 7, 13, [0, 1, 2, 3], 3, 14, True, False, [2, 3], [3, 8], [2, 3], ['a', 'b'], ['e', 'h', 'l', 'l', 'o'], 3, True, True)
def main():
    words = ['pear', 'fig', 'apple', 'kiwi']
    pairs = [(2, 'b'), (1, 'z'), (2, 'a')]
    pairs.sort(key=lambda p: p[0])
    descending = [3, 1, 2]
    descending.sort(key=lambda x: x, reverse=True)
    empty: List[int] = []
    return (sorted(words, key=len), sorted(words, key=lambda w: w[-1], reverse=True), sorted([3, 1, 2], reverse=True), pairs, descending,
            min(words, key=len), max(words, key=lambda w: w), min('b', 'a'), max(words), min((3, 1.5)), max([(1, 'a'), (1, 'b')]),
            min(empty, default=7), sum([1, 2], 10), sum([[1], [2, 3]], [0]), sum((1, 2)), sum(x * x for x in range(4)), any(w == 'fig' for w in words),
            all(len(w) > 3 for w in words), list(map(lambda x: x + 1, [1, 2])), list(map(lambda a, b: a * b, [1, 2], [3, 4])),
            list(filter(lambda x: x > 1, [1, 2, 3])), sorted({'b': 1, 'a': 2}), sorted('hello'), len(range(2, 10, 3)), 4 in range(0, 10, 2), 5 not in range(5))
