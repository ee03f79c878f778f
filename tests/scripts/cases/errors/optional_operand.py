# expect error: A value of type Optional may be None: check `is not None` first.
def main(x: Optional[int] = 3):
    return x + 1
