# expect: 6
class Box:
    def __init__(self, value: int):
        self._value = value

    @property
    def value(self) -> int:
        return self._value + 1

    @value.setter
    def value(self, value: int):
        self._value = value

    @value.deleter
    def value(self):
        self._value = 0


def main():
    box = Box(3)
    box.value = 5
    return box.value
