# expect: 3
def check(x: int) -> int:
    assert x > 0, 'must be positive'
    return x

def main():
    return check(3)
