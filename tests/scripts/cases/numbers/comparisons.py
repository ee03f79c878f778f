# expect: (True, False, True, False, True, True, False, True, True)
def main():
    a = 3
    b = 3.0
    return a == b, a != b, a < 4, 2 >= 3, 1 < 2, not (a < b), True and False, True or False, 1 < 2 and 2 < 3
