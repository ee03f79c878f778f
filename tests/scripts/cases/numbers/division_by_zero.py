# expect error: ZeroDivisionError
def main():
    a = 1
    b = 0
    return a // b
