# expect error: modulo by 0
def main():
    a = 1
    b = 0
    return a % b
