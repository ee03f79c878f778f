# expect: (2, 'GREEN', 'GREEN', 'is red', True, False)
class Color(Enum):
    RED = 1
    GREEN = 2

def name_of(c: Color) -> str:
    if c == Color.RED:
        return 'is red'
    return c.name

def main():
    c = Color.GREEN
    return c.value, c.name, name_of(c), name_of(Color.RED), c == Color.GREEN, c is Color.RED
