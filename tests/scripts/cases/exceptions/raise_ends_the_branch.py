# expect: 8
def f(x: int) -> int:
    if x > 0:
        y = x * 2
    else:
        raise Exception('not positive')
    return y

def main():
    return f(4)
