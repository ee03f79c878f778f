# expect: (False, False, True, True, -inf, False, True, True)
def main():
    nan = float('nan')
    inf = float('inf')
    return nan == nan, nan < 1.0, nan != nan, inf > 1e308, -inf, inf - inf == 0.0, math.isnan(nan), math.isinf(inf)
