# expect: ((0.002, 4096, 0.001, 'abb', 0.5), (0.001, 2, 0.001, 'x', 0.5), (19, 0, -6.283185307179586), (19, 1, -6.283185307179586))
def scaled(x: float, size: int = 4 * 1024, eps: float = 10 ** -3, name: str = "a" + "b" * 2, half: float = 1 / 2) -> Tuple[float, int, float, str, float]:
    return x * eps, size, eps, name, half


def shifted(n: int = 1 << 4 | 3, m: int = -(7 // 2) % 3, far: float = -2 * math.pi) -> Tuple[int, int, float]:
    return n, m, far


def main():
    return scaled(2.0), scaled(1.0, 2, name="x"), shifted(), shifted(m=1)
