# expect error: attempt to assign sequence of size 1 to extended slice of size 2
def main():
    a = [1, 2, 3]
    a[::2] = [1]
    return a
