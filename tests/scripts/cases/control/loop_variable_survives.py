# expect: (3, 2)
def main():
    i = -1
    for i in range(4):
        pass
    x = 0
    for k in range(3):
        x = k
    return i, x
