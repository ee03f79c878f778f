# expect error: Optional[int]
def f(x: Optional[int]) -> int:
    return x + 1

def main():
    return f(3)
