# expect: (7, -1)
def f(l: List[int]) -> int:
    for i in l:
        if i < 0:
            raise ValueError('neg')
        elif i == 0:
            return -1
    return 7
def main():
    return f([1, 2]), f([1, 0, 2])
