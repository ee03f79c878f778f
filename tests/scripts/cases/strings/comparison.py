# expect: (True, True, True, True, 97, 'b', '0xff', '0o10', '0b101')
def main():
    return 'abc' == 'abc', 'abc' < 'abd', 'b' > 'abc', '' < 'a', ord('a'), chr(98), hex(255), oct(8), bin(5)
