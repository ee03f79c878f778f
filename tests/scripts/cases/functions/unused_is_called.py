# expect error: is marked @torch.jit.unused
@torch.jit.unused
def in_python(x: int) -> int:
    return {x, 2}


def main():
    return in_python(3)
