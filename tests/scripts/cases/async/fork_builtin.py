# expect: (3, 97)
import torch


def main():
    values = [3, 1, 2]
    f = torch.jit.fork(len, values)
    g = torch.jit.fork(ord, "a")
    return torch.jit.wait(f), torch.jit.wait(g)
