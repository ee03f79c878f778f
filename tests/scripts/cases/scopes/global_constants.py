# as Python: the text of a program for PyTorch has functions only
# expect: (3, 0.5, 'wickwick', (-1, 6), True, True, inf, 4.0, [(3, 'wick')], 4)
SIZE = 3
RATE: float = 0.5
NAME = 'wick'
EDGES = (-1, SIZE * 2)
ON = True
NOTHING = None
INFINITE = float('inf')
Pairs = List[Tuple[int, str]]


def scaled(x: float, by: float = RATE) -> float:
    return x * by


def make() -> Pairs:
    return [(SIZE, NAME)]


def main():
    SHADOW = SIZE + 1
    return SIZE, RATE, NAME * 2, EDGES, ON, NOTHING is None, INFINITE, scaled(8.0), make(), SHADOW
