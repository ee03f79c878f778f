# expect error: object has no value for its attribute 'total' yet
class Counter:
    total: int

    def __init__(self, start: int):
        self.start = start


def main():
    return Counter(3).total + 1
