# expect error: nope
def main():
    d = {'a': 1}
    return d['nope']
