# expect error: can be called and handed to a function
def main():
    fs = [lambda x: x]
    return 1
