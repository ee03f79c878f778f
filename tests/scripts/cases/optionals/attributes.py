# expect: (-1, 3)
class A:
    def __init__(self, x: Optional[int]):
        self.x = x
    def get(self) -> int:
        x = self.x
        if x is not None:
            return x
        return -1
def main():
    return A(None).get(), A(3).get()
