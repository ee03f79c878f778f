# expect: ('int 2', 'str a', 'list 2', True, True)
def f(x: Union[int, str, List[int]]) -> str:
    if isinstance(x, int):
        return 'int ' + str(x + 1)
    elif isinstance(x, str):
        return 'str ' + x
    else:
        return 'list ' + str(len(x))

def main():
    return f(1), f('a'), f([1, 2]), isinstance(1.0, float), isinstance(3, (int, str))
