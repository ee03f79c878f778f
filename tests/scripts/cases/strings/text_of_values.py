# as Python: PyTorch writes 1. for 1.0, leaves quotes out and crashes for an empty dict
# expect: ('1.0', '0.1', '1e+16', '[0.1, 2.0]', "('a', 1)", "{'a': 0.5}", '["it\'s"]', '(1+2j)', "[1.5] ('a',)")
# prints: 1.0 0.1 a [1.0, 0.5] ('x', None) {'k': True} 1e+20 -0.0 2j
def main():
    print(1.0, 0.1, 'a', [1.0, 0.5], ('x', None), {'k': True}, 1e20, -0.0, 2j)
    return str(1.0), str(0.1), str(1e16), str([0.1, 2.0]), str(('a', 1)), str({'a': 0.5}), str(['it\'s']), str(1 + 2j), f'{[1.5]} {("a",)}'
