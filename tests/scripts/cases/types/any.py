# expect: ('int', 'float', 'tensor', 'other')
def describe(x: Any) -> str:
    if isinstance(x, int):
        return 'int'
    if isinstance(x, float):
        return 'float'
    if isinstance(x, torch.Tensor):
        return 'tensor'
    return 'other'

def main():
    return describe(1), describe(1.5), describe(torch.ones(1)), describe('s')
