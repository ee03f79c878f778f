# expect: ('4', 'a?', '2')
def f(x: Union[int, str, List[float]]) -> str:
    if isinstance(x, int):
        return str(x + 1)
    elif isinstance(x, str):
        return x + '?'
    else:
        return str(len(x))
def main():
    return f(3), f('a'), f([1.0, 2.0])
