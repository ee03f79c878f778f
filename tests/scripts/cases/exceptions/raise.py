# expect error: the value is 3
def main():
    x = 3
    if x > 2:
        raise ValueError('the value is {}'.format(x))
    return x
