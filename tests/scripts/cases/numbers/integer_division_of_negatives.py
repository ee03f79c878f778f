# expect: ([3, -4, 2, -3, -4, 3, -3, 2], [1, -1, 1, -2, 1, -1, 2, -1])
def main():
    quotients: List[int] = []
    remainders: List[int] = []
    for a in [7, -7]:
        for b in [2, -2, 3, -3]:
            quotients.append(a // b)
            remainders.append(a % b)
    return quotients, remainders
