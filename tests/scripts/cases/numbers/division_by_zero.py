# expect error: division by zero
def main():
    a = 1
    b = 0
    return a // b
