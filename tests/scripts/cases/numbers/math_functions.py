# expect: (1.4142135623730951, -3, 3, 2.718281828459045, 2.302585092994046, 1.4142135623730951, 3.5, 0.4636476090008061, -1.0, 6, 120, 3.141592653589793)
def main():
    return (math.sqrt(2.0), math.floor(-2.5), math.ceil(2.1), math.exp(1.0), math.log(10.0), math.pow(2.0, 0.5),
            math.fabs(-3.5), math.atan2(1.0, 2.0), math.fmod(-7.0, 3.0), math.gcd(12, 18), math.factorial(5), math.pi)
