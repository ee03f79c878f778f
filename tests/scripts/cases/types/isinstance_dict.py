# as Python: PyTorch needs the types of keys and values
# expect: (4, 11, 2, True, False, 2)
def size(x: Union[int, Dict[str, int], List[int]]) -> int:
    if isinstance(x, dict):
        return len(x) + 10
    if isinstance(x, (list, tuple)):
        return len(x)
    return x


def main():
    maybe: Optional[Dict[str, int]] = {'a': 1, 'b': 2}
    n = 0
    if isinstance(maybe, dict):
        n = maybe['b']
    return size(4), size({'a': 1}), size([5, 6]), isinstance({1: 2}, dict), isinstance(3, (dict, str)), n
