# expect: (6.5, 'a1b2')
def main():
    total = 0.0
    for x in (1, 2.5, 3):
        total += x
    text = ''
    for name, n in (('a', 1), ('b', 2)):
        text += name + str(n)
    return total, text
