# expect: (2, 9)
def main():
    i = 100
    for i in range(3):
        pass
    j = -1
    for j in [7, 8]:
        j += 1
    for k, v in {'a': 1}.items():
        pass
    return i, j
