# expect: ('Hello, World', 12, 'H', 'd', 'ell', 'Hlo ol', 'rld', True, True)
def main():
    s = 'Hello, ' + "World"
    return s, len(s), s[0], s[-1], s[1:4], s[::2], s[-3:], 'World' in s, 'x' not in s
