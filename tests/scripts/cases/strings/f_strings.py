# expect: ('x = 42', '43 and 0.5', '{braces} True', '')
def main():
    name = 'x'
    value = 42
    half = 0.5
    flag = True
    return f'{name} = {value}', f'{value + 1} and {half}', f'{{braces}} {flag}', f''
