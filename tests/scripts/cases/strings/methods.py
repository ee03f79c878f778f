# expect: ('Some Text', '  SOME TEXT ', '  some text ', '  sOME tEXT ', 7, '  Som3 T3xt ', True, False, 2, ['a', 'b', '', 'c'], ['a', 'b'], 'x-y-z', '***ab', 'ab  ', '007', 'Word', 2, 'Title Case')
def main():
    s = '  Some Text '
    return (s.strip(), s.upper(), s.lower(), s.swapcase(), s.find('T'), s.replace('e', '3'), s.startswith('  S'), s.endswith('x'),
            s.count('e'), 'a,b,,c'.split(','), ' a  b '.split(), '-'.join(['x', 'y', 'z']), 'ab'.rjust(5, '*'), 'ab'.ljust(4), '7'.zfill(3),
            'word'.capitalize(), 'abc'.index('c'), 'title case'.title())
