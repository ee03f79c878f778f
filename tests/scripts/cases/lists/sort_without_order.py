# expect error: have no order
def main():
    pairs = [({1: 2}, {2: 3})]
    pairs.sort()
    return pairs
