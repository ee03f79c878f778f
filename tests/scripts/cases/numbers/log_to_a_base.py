# expect: ((1.6609640474436813+1.8019921416822866j), (1.6609640474436813+1.8019921416822866j), (0.27655183819828816-0.30003312833175816j), (1+0j), (0.5+0.5424536865971469j), True, True, (-0-0j))
def main():
    z = 1 + 3j
    return math.log(z, 2), math.log(z, 2.0), math.log(2.0, z), math.log(z, z), math.log(z, 10), math.isnan(math.log(z, -2.0)), math.isnan(math.log(-1.5, z)), math.log(1j, 0.0)
