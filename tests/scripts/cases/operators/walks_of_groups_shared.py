# expect error: Trying to backward through the graph a second time
def main():
    x = torch.tensor([0.5, -1.0, 2.0]).requires_grad_()
    y = torch.sin(x)
    z = torch.cos(x) + y
    first = torch.autograd.grad([y.sum()], [x])
    return first, torch.autograd.grad([z.sum()], [x])
