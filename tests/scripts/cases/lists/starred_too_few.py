# expect error: not enough values to unpack (expected at least 2, got 1)
def main():
    a, b, *c = [1]
    return a
