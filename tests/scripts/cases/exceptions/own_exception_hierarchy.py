# expect: 3
class Failure(Exception):
    pass

class Detailed(Failure):
    def __init__(self, detail):
        self.detail = detail

def check(n: int) -> int:
    if n > 10:
        raise Failure('too large')
    elif n < 0:
        raise Detailed('negative')
    return n

def main():
    return check(3) + check(0)
