# expect error: the parameter 'n' of the function 'f' is of type int, found str
def main():
    def f(n: int):
        return n
    return f('a')
