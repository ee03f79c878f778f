# expect error: return
def f(x: int) -> int:
    if x > 2:
        return 'text'
    return 1

def main():
    return f(1)
