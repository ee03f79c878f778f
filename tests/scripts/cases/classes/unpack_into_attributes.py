# expect: (7, 7, 6)
class A:
    def __init__(self):
        self.x = 1
        self.y = 2
def main():
    a = A()
    a.x, a.y = a.y, a.x
    (a.x, b) = (5, 6)
    a.x = a.y = 7
    return a.x, a.y, b
