# expect: (6, 6.0, True)
def twice(x: torch.types.Number) -> torch.types.Number:
    if isinstance(x, int):
        return x * 2
    elif isinstance(x, float):
        return x * 4
    return x


def main():
    return twice(3), twice(1.5), twice(True)
