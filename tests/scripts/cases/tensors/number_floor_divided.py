# expect: (2, -3, 3.0, tensor(1), tensor([ 3, -4]), tensor(2.))
def main():
    x = torch.tensor(3)
    return 7 // x, -7 // x, 7.5 // torch.tensor(2.0), x // 2, torch.tensor([7, -7]) // 2, torch.tensor(7.5) // x
