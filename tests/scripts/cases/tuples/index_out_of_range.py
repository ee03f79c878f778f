# expect error: out of range
def main():
    t = (1, 2)
    return t[2]
