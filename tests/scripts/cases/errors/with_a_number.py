# expect error: With item expression must return an object, found a value of type int
def main():
    with 3:
        pass
