# expect: (5, 7, 9)
def f(x: Union[List[int], Dict[str, int], Tuple[int, int]]) -> int:
    if torch.jit.isinstance(x, List[int]):
        return x[0]
    elif torch.jit.isinstance(x, Dict[str, int]):
        return x['a']
    else:
        assert torch.jit.isinstance(x, Tuple[int, int])
        return x[1]
def main():
    return f([5]), f({'a': 7}), f((1, 9))
