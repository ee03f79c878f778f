# as Python: PyTorch has neither ** nor |
# expect: ({'x': 1, 'y': 2}, {'x': 1, 'y': 5, 'z': 6}, {'x': 9, 'y': 2}, {'x': 0, 'y': 2})
def main():
    a = {'x': 1, 'y': 2}
    b = {**a, 'y': 5, **{'z': 6}}
    c = a | {'x': 9}
    d = {**a}
    d['x'] = 0
    return a, b, c, d
