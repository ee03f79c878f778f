# expect: ('negative', 'zero', 'small', 'large')
def kind(x: int) -> str:
    if x < 0:
        return 'negative'
    elif x == 0:
        return 'zero'
    elif x < 10:
        return 'small'
    else:
        return 'large'

def main():
    return kind(-5), kind(0), kind(3), kind(1000)
