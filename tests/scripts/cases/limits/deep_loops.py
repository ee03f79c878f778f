# expect: 12857
def main():
    n = 0
    for i in range(300):
        for j in range(300):
            if (i + j) % 7 == 0:
                n += 1
    return n
