# expect error: is called recursively
def main():
    def f(n: int):
        return f(n - 1)
    return f(3)
