# as Python: PyTorch has none of these, or crashes
# expect: (True, False, 'abc', 'fix', 'pre', 'abc', '-a-b-c-', 4, '-0042', 'a   b\n    c', ['a', 'b c'], ['a\n', 'b\r\n', 'c\n'], True, True, ['a', 'b', 'c'], ['  a', 'b'], 'x')
def main():
    return ('abc'.isascii(), 'é'.isascii(), 'ABC'.casefold(), 'prefix'.removeprefix('pre'), 'prefix'.removesuffix('fix'), 'abc'.removeprefix('x'), 'abc'.replace('', '-'), 'abc'.count(''),
            '-42'.zfill(5), 'a\tb\n\tc'.expandtabs(4), 'a b c'.split(None, 1), 'a\nb\r\nc\n'.splitlines(True), '\x1c'.isspace(), '_a1'.isidentifier(), 'a b  c'.rsplit(), '  a b '.rsplit(None, 1), '\r x\r'.strip())
