# expect: (True, True, True, True, True, True, False)
def main():
    return '123'.isdigit(), 'abc'.isalpha(), 'a1'.isalnum(), ' '.isspace(), 'ABC'.isupper(), 'abc'.islower(), ''.isdigit()
