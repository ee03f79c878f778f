# expect: ('V2', 3, 1.5)
class V:
    def __init__(self, x: int):
        self.x = x
    def __str__(self) -> str:
        return 'V' + str(self.x)
    def __int__(self) -> int:
        return self.x
    def __float__(self) -> float:
        return 1.5
    def __repr__(self) -> str:
        return 'r'
def main():
    return str(V(2)), int(V(3)), float(V(3))
