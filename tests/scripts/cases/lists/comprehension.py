# expect: ([1, 4, 9, 16, 25], [0.0, 1.0, 2.0], [[0, 0, 0], [0, 1, 2]], [1, 3])
def main():
    xs = [1, 2, 3, 4, 5]
    return [x * x for x in xs], [float(i) for i in range(3)], [[i * j for j in range(3)] for i in range(2)], [len(s) for s in ['a', 'bcd']]
