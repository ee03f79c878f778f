# expect error: x is not defined here: it is not defined in the false branch
def main(c: bool = True):
    if c:
        x = 1
    return x
