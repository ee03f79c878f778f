# expect error: Argument b not provided
def f(a: int, b: int) -> int:
    return a + b

def main():
    return f(1)
