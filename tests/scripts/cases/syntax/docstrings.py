# expect: (2, 1)
def f(x: int):
    """Doc
    more
    """
    return x
class A:
    """class doc"""
    def __init__(self):
        """init doc"""
        self.x = 1
    def m(self):
        'm doc'
        return self.x
def main():
    return f(2), A().m()
