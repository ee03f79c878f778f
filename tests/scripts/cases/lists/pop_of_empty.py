# expect error: pop from empty list
def main():
    xs: List[int] = []
    return xs.pop()
