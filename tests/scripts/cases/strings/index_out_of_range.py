# expect error: index
def main():
    s = 'abc'
    i = 7
    return s[i]
