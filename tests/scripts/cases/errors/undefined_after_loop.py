# expect error: y is not defined here: it is defined only in a loop, which may not run
def main():
    for i in range(3):
        y = i
    return y
