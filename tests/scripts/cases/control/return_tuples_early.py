# expect: (('a', 1), ('b', 2), ('c', 2), ('d', 4))
def f(x: int):
    if x > 3:
        if x > 5:
            return 'a', 1
        return 'b', 2
    for i in range(x):
        if i == 2:
            return 'c', i
    return 'd', 4
def main():
    return f(6), f(4), f(3), f(1)
