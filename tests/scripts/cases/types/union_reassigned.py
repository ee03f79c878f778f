# expect: ('int1', 'stra', 'float2.5')
def f(flag: int) -> str:
    x: Union[int, str, float] = 1
    if flag == 1:
        x = 'a'
    elif flag == 2:
        x = 2.5
    if isinstance(x, int):
        return 'int' + str(x)
    elif isinstance(x, str):
        return 'str' + x
    else:
        return 'float' + str(x)
def main():
    return f(0), f(1), f(2)
