# expect error: have no order
def main():
    tups = [({1: 2}, {2: 3})]
    tups.sort()
    return tups
