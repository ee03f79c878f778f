# expect: (1, 5)
class A:
    def __init__(self):
        self.x = 1
def main():
    a = A()
    if hasattr(a, 'x'):
        n = a.x
    else:
        n = 'no'
    if hasattr(a, 'y'):
        m = a.y
    else:
        m = 5
    return n, m
