# expect: ([6, 2], 1)
class K:
    def __init__(self):
        self.n = 0
    def idx(self) -> int:
        self.n += 1
        return 0
def main():
    k = K()
    l = [1, 2]
    l[k.idx()] += 5
    return l, k.n
