# expect: (1, 2, 11, 'LAST', [1, 2, 10, 11])
import enum


class Step(Enum):
    FIRST = enum.auto()
    SECOND = enum.auto()
    LATE = 10
    LAST = enum.auto()
    AGAIN = 10


def main():
    return Step.FIRST.value, Step.SECOND.value, Step.LAST.value, Step.LAST.name, [s.value for s in Step]
