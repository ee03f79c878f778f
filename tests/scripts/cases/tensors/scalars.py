# expect: (3.5, 3, 3.5, 4, True, 0, tensor([7.5000]))
def main():
    x = torch.tensor(3.5)
    n = torch.tensor([4])
    return float(x), int(x), x.item(), int(n), bool(n > 3), x.dim(), x + n
