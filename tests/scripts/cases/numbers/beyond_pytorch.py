# as Python: PyTorch has none of these
# expect: (255, 5, -35, 1000, 2.57, 1200.0, 20, 2.67, 2, 4, -2, 8, False, (1-2j), (-3+4j))
def main():
    return (int('ff', 16), int('0b101', 0), int('-z', 36), int(' 1_000 ', 10), round(2.567, 2), round(1250.0, -2), round(25, -1), round(2.675, 2), pow(2, 10, 7), pow(3, -1, 11), pow(-3, 3, -5),
            (255).bit_length(), (1.5).is_integer(), (1 + 2j).conjugate(), (1 + 2j) ** 2)
