# expect error: recursive
def main():
    return f(3)

def f(n: int) -> int:
    if n <= 1:
        return 1
    return n * f(n - 1)
