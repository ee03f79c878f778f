# expect: (2, 'RED', [1, 2])
class Color(Enum):
    RED = 1
    GREEN = 2

    def mixed(self):
        return {self.value}

    @classmethod
    def first(cls):
        return cls.RED


def main():
    return Color.GREEN.value, Color.RED.name, [c.value for c in Color]
