# expect error: append
def main():
    xs = [1, 2]
    xs.append('three')
    return xs
