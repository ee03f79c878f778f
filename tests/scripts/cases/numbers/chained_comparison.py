# expect: (True, False, True)
def main():
    x = 5
    return 1 < x < 10, 1 < x < 3, 10 > x >= 5 != 4
