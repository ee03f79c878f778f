# expect: (['0', '1', '2'], [(0, 0.0), (1, 0.5), (2, 1.0)])
def main():
    words: List[str] = []
    pairs: List[Tuple[int, float]] = []
    for i in range(3):
        words.append(str(i))
        pairs.append((i, i / 2))
    return words, pairs
