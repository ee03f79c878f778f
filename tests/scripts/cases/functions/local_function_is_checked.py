# expect error: undefined value nothing
def main():
    def f(n: int):
        return nothing + n
    return 3
