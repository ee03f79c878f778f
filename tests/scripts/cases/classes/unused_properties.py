# expect: 4
class Box:
    __jit_unused_properties__ = ["odd"]

    def __init__(self, value: int):
        self._value = value

    @property
    def odd(self):
        return self.nothing.of(3)

    @property
    def value(self) -> int:
        return self._value + 1


def main():
    return Box(3).value
