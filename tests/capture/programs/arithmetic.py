"""Arithmetic and comparisons of tensors and numbers."""

import math


@program(given((3, 4), (3, 4)))
def every_binary_operator(x, y):
    return x + y, x - y, x * y, x / y, x // y, x % y, x ** 2, x @ y.t()


@program(lambda: (torch.tensor([6, 5, 12]), torch.tensor([3, 1, 2])))
def every_bit_operator(x, y):
    return x & y, x | y, x ^ y, x << y, x >> y, ~x


@program(given((3, 4), (3, 4)))
def unary_operators(x, y):
    return -x, +y, ~(x > 0), abs(x)


@program(lambda: (torch.randn(2, 3), 2, 2.5))
def numbers_from_the_left(x, n, a):
    return n + x, a - x, n * x, a / (x.abs() + 1), n ** x, n // (x.abs() + 1), a % (x.abs() + 1)


@program(given((4,), (4,)))
def in_place_operators_on_results(x, y):
    z = x + 1
    z += y
    z -= 0.5
    z *= 2
    z /= 4
    z **= 2
    z //= 0.25
    z %= 3
    return z


@program(lambda: (torch.tensor([6, 5]), torch.tensor([3, 1])))
def in_place_bit_operators(x, y):
    z = x.clone()
    z &= 7
    z |= y
    z ^= 2
    z <<= 1
    z >>= y
    return z


@program(given((2, 2), (2, 2)))
def in_place_matrix_product(x, y):
    z = x
    z @= y
    return z, x


@program(given((5,), (5,)))
def every_comparison_of_tensors(x, y):
    return x < y, x <= y, x == y, x != y, x > y, x >= y


@program([lambda: (torch.randn(3), 3), lambda: (torch.randn(3), -2), lambda: (torch.randn(3), 0)])
def comparisons_of_numbers(x, n):
    return x * (n < 1), n <= 0, x * int(n == 3), n != 2, n > 4, n >= 3


@program([lambda: (torch.randn(3), 7, -3), lambda: (torch.randn(3), -7, 3), lambda: (torch.randn(3), 2 ** 70, 5)])
def integers_of_python(x, a, b):
    return x + 1, a + b, a - b, a * b, a / b, a // b, a % b, divmod(a, b), -a, ~a, a & b, a | b, a ^ b, a << 3, a >> 1, abs(b)


@program([lambda: (torch.randn(3), 7.5, -2.25), lambda: (torch.randn(3), -0.0, 3.0), lambda: (torch.randn(3), 1e300, 1e-300)])
def floats_of_python(x, a, b):
    return x * a, a + b, a - b, a * b, a / b, a // b, a % b, a < b, round(a, 1), int(b), float("1.5"), abs(a), a.is_integer()


@program(lambda: (torch.randn(3), 1 + 2j, 0.5j))
def complex_numbers(x, a, b):
    return x + a.real, a * b, a - b, abs(a), a.conjugate(), a == b, b.imag, -a


@program([lambda: (torch.randn(3), 2, 10), lambda: (torch.randn(3), 2, -1), lambda: (torch.randn(3), 3, 5)])
def powers(x, a, b):
    return x ** 0.5, a ** b, pow(a, abs(b), 7), 2.0 ** a, x.pow(b)


@program([lambda: (torch.ones(2), 0.0), lambda: (torch.ones(2), -0.0), lambda: (torch.ones(2), math.nan),
          lambda: (torch.ones(2), math.inf)])
def zeros_with_signs_and_nan(x, a):
    return x * a, a, -a, a == a, math.copysign(1.0, a)


@program([lambda: (torch.ones(2), True), lambda: (torch.ones(2), 1), lambda: (torch.ones(2), 1.0),
          lambda: (torch.ones(2), True)])
def one_in_three_types(x, a):
    return x + a, a, type(a), a + a, not a


@program([lambda: (torch.ones(2, dtype=torch.int64), 1), lambda: (torch.ones(2, dtype=torch.int64), 1.0),
          lambda: (torch.ones(2, dtype=torch.int64), True)])
def type_promotion_by_number(x, a):
    return x + a, x * a, x / 2, x == a


@program(lambda: (torch.arange(3), torch.randn(3), torch.randn(3).double(), torch.tensor([True, False, True])))
def type_promotion_of_tensors(i, f, d, b):
    return i + f, f + d, b + i, b * f, (i / 2), i // 2, b | False


@program(given((3, 1), (1, 4), (4,)))
def broadcasting(a, b, c):
    return a + b, a * c, (a < b), a + b + c


@program(lambda: (torch.tensor(3.5), torch.tensor(2)))
def tensors_without_dimensions(a, b):
    return a + b, a * 2, b / 4, a > b, a ** b


@program([lambda: (torch.randn(0), torch.randn(3)), lambda: (torch.randn(2), torch.randn(1)),
          lambda: (torch.randn(1), torch.randn(3))])
def empty_and_single(x, y):
    return x * 2, y.sum(), x.sum() + 1, x.shape


@program(lambda: (torch.randn(3), 12))
def numbers_by_methods(x, n):
    return x * n.bit_length(), n.real, (2.5).as_integer_ratio(), (7).__add__(3), float.fromhex("0x1p-2"), int("11", 2)


@program([given((3,), 1), given((3,), 5), given((3,), 9)])
def chained_comparison(x, n):
    if 0 < n < 4 <= 6:
        return x + 1
    if 4 < n <= 8 != 7:
        return x + 2
    return x + 3


@program([given((3,), None), given((3,), 0), given((3,), 2)])
def logic_of_numbers(x, n):
    a = n or 5
    b = n and n + 1
    c = not n
    return x * a, b, c, (n is None) or (n > 1 and a)


@program(given((3,)))
def division_by_zero_of_tensors(x):
    return x / 0, x // 0.0, (x * 0) / 0


@program([given((3,), 2), given((3,), 0), given((3,), 4)], raises="ZeroDivisionError")
def division_by_zero_of_numbers(x, n):
    return x * (10 / n)


@program(given((2, 3), (4, 5)), raises="RuntimeError", graphs=0, breaks="Python raises the error before the first operator has run")
def shapes_that_do_not_fit(x, y):
    return x + y


@program(given((3,), "a"), raises="TypeError", graphs=0, breaks="Python raises the error before the first operator has run")
def tensor_and_string(x, s):
    return x + s


@program(given((3,)))
def many_constants_in_one_expression(x):
    return x * 2 + 3 * 4 - 5 % 3 + 2 ** 5 // 7 + (1 if True else 2) + 0x10 + 0b11 + 1_000 + 1e-3


@program(lambda: (torch.randn(3, dtype=torch.float64), torch.randn(3) + 1j * torch.randn(3)), graphs={"wick": 1}, breaks="a result is a view of another dtype")
def other_dtypes(d, c):
    return d + 1, c * 2, c + d, c.real, c.imag, c.abs()


@program(given((3, 4)))
def minimum_and_maximum_of_python(x):
    a, b = x.sum(), x.mean()
    return max(3, 1, 2), min(4.5, 2), max([1, 7, 3]), min("hello"), max(-3, 2, key=abs), sum([1, 2, 3], 10), a + b
