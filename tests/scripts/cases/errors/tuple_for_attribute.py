# expect error: Wrong type for attribute assignment. Expected List[int] but got Tuple[int, int]
class Box:
    items: List[int]
    def __init__(self):
        self.items = [1]
def main():
    box = Box()
    box.items = (1, 2)
    return box.items
