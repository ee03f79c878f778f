# expect: (1, (2, 3))
def main():
    a, *rest = [1, 2, 3] if False else (1, 2, 3)
    return a, rest
