# expect: ('even', 1, -4)
def main():
    x = 4
    y = 'even' if x % 2 == 0 else 'odd'
    z = 1 if x > 3 else 2 if x > 2 else 3
    return y, z, (x if x > 10 else -x)
