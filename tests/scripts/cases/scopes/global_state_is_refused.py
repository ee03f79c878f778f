# expect error: a global variable must be a constant
NAMES = ['a']


def main():
    return len(NAMES)
