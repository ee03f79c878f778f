# as Python: PyTorch's loop ends before it begins when the start is negative
# expect: ([-10, -6, 0], [-9, -8])
def main():
    found: List[int] = []
    for i, x in enumerate([5, 6, 7], start=-2):
        found.append(i * x)
    return found, [i for i, c in enumerate("ab", -9)]
