# expect: ((3+4j), (3+5j), (-7+24j), 5.0, True)
def main():
    z = complex(3, 4)
    return z, z + 1j, z * z, abs(z), z == complex(3.0, 4.0)
