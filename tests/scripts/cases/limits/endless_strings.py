# expect: 2000
def main():
    s = ''
    for i in range(1000):
        s += 'ab'
    return len(s)
