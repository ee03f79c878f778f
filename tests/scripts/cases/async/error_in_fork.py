# expect error: from the fork
def bad(x: int) -> int:
    if x > 0:
        raise Exception('from the fork')
    return x

def main():
    f = torch.jit.fork(bad, 1)
    return torch.jit.wait(f)
