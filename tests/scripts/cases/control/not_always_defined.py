# expect error: y
def main():
    x = 3
    if x > 2:
        y = 1
    return y
