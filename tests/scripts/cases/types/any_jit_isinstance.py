# expect: ('a', 'opt', 'dict4', 'lists', 'lists', 'else')
def f(x: Any) -> str:
    if torch.jit.isinstance(x, Tuple[int, str]):
        return x[1]
    if torch.jit.isinstance(x, Optional[int]):
        return 'opt'
    if torch.jit.isinstance(x, Dict[str, List[int]]):
        return 'dict' + str(x['a'][0])
    if torch.jit.isinstance(x, (List[str], List[float])):
        return 'lists'
    return 'else'
def main():
    return f((1, 'a')), f(3), f({'a': [4]}), f(['a']), f([2.0]), f(1.0)
