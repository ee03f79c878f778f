# expect error: deep inside
def inner(x: int) -> int:
    if x > 2:
        raise ValueError('deep inside')
    return x

def outer(x: int) -> int:
    return torch.jit.wait(torch.jit.fork(inner, x))

def main():
    fine = torch.jit.fork(outer, 1)
    bad = torch.jit.fork(outer, 5)
    return torch.jit.wait(fine) + torch.jit.wait(bad)
