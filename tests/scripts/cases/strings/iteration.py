# expect: (True, 'héy', ['aa', 'bb'], ['x', 'y', 'z'])
def main():
    out: List[str] = []
    for c in 'héy':
        out.append(c)
    return len(out) > 0, ''.join(out), [c + c for c in ['a', 'b']], list('xyz')
