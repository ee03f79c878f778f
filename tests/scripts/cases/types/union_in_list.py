# expect: (3, 'a', [1, 'a', 2])
def main():
    l: List[Union[int, str]] = [1, 'a', 2]
    n = 0
    s = ''
    for e in l:
        if isinstance(e, int):
            n += e
        else:
            s += e
    return n, s, l
