# expect error: int
def main():
    x: int = 'text'
    return x
