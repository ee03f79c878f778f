# expect: (3, 2.5, 3, 7, 2, 1.5, 6, 2.0, 4.0, 1024.0, (-4, 1))
def main():
    return abs(-3), abs(-2.5), min(3, 4), max(2, 7), min([5, 2, 9]), max([1.5, 0.5]), sum([1, 2, 3]), round(2.5), round(3.5), pow(2, 10), divmod(-7, 2)
