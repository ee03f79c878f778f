# expect error: Argument input specified twice
import torch


def main():
    x = torch.ones(2)
    return torch.add(x, 1, input=x)
