# expect error: builtin 'print' cannot be used as a value
def main():
    return print
