# expect error: nothing
class Box:
    def __init__(self, w: int):
        self.w = w

def main():
    b = Box(4)
    return b.nothing
