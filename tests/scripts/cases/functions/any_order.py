# expect: 17
def main():
    return later(4)

def later(x: int) -> int:
    return even_later(x) + 1

def even_later(x: int) -> int:
    return x * x
