# expect error: has no
class Color(Enum):
    RED = 1
    CRIMSON = 1


def main():
    return Color.CRIMSON.value
