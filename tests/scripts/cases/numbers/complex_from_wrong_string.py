# expect error: complex() arg is a malformed string: '1 + 2j'
def main():
    return complex('1 + 2j')
