# expect error: the elements of a tuple cannot be deleted
def main():
    x = (1, 2)
    del x[0]
    return x
