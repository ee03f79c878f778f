# expect: 0
# prints: 1 two 3.5 True
# prints: [1, 2] (1, 2)
def main():
    print(1, 'two', 3.5, True)
    print([1, 2], (1, 2))
    return 0
