# as Python: PyTorch has none of these
# expect: (-1, 4, 12, 19600, 20, 24, 1.0, 1.0, 5.0, 6, 2.0, 30, True, True, 1.0000000000000002, 2.220446049250313e-16, 8.0, (0.5, 3.0), False, True)
def main():
    return (math.trunc(-1.7), math.isqrt(17), math.lcm(4, 6), math.comb(50, 3), math.perm(5, 2), math.perm(4), math.fsum([0.1] * 10), math.fsum([1e16, 1.0, -1e16]), math.dist([0.0, 0.0], [3.0, 4.0]),
            math.prod([1, 2, 3]), math.prod([0.5, 4.0]), math.prod([2, 3], start=5), math.isclose(1.0, 1.0 + 1e-10), math.isclose(1.0, 1.1, rel_tol=0.2), math.nextafter(1.0, 2.0), math.ulp(1.0), math.exp2(3.0),
            math.modf(3.5), math.isnan(1), math.isfinite(3))
