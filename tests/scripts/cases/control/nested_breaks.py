# expect: [(1, 0), (2, 1), (3, 0), (3, 2)]
def main():
    pairs: List[Tuple[int, int]] = []
    for i in range(5):
        for j in range(5):
            if j == i:
                break
            if (i + j) % 2 == 0:
                continue
            pairs.append((i, j))
        if i == 3:
            break
    return pairs
