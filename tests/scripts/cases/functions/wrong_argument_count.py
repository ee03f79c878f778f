# expect error: missing
def f(a: int, b: int) -> int:
    return a + b

def main():
    return f(1)
