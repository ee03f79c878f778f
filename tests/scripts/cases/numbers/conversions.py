# expect: (3, -3, 2.0, False, True, 42, 2.5, 1, '12', 'True', -1000.0)
def main():
    return int(3.9), int(-3.9), float(2), bool(0), bool(2), int('42'), float('2.5'), int(True), str(12), str(True), float('-1e3')
