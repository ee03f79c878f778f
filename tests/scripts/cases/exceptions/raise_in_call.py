# expect error: deep inside
def inner(n: int) -> int:
    if n == 0:
        raise RuntimeError('deep inside')
    return n

def middle(n: int) -> int:
    return inner(n - 1) + 1

def main():
    return middle(1)
