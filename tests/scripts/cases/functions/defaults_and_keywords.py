# as Python: PyTorch writes 2. for 2.0
# expect: ('110c0.5', '12c0.5', '110x0.5', '43c0.5', '12z2.0')
def f(a: int, b: int = 10, c: str = 'c', d: float = 0.5) -> str:
    return str(a) + str(b) + c + str(d)

def main():
    return f(1), f(1, 2), f(1, c='x'), f(b=3, a=4), f(1, 2, 'z', d=2.0)
