# expect: (True, False, True, 5, 1)
class A:
    def __init__(self):
        self.x = 1
def main():
    a = A()
    b = a
    c = A()
    b.x = 5
    return a is b, a is c, a is not c, a.x, c.x
