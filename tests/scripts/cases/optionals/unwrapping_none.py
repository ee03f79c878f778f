# expect error: AssertionError
def h(x: Optional[int]) -> int:
    assert x is not None
    return x * 2

def main():
    return h(None)
