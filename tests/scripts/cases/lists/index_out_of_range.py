# expect error: list index out of range
def main():
    xs = [1, 2, 3]
    i = 3
    return xs[i]
