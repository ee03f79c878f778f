# expect error: expected
def main():
    x = (1 +
    return x
