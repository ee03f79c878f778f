# expect error: Trying to backward through the graph a second time
def main():
    x = torch.tensor([[0.5, -1.0], [2.0, 0.25], [1.0, 3.0]]).requires_grad_()
    h, g = torch.zeros(2), torch.zeros(2)
    for i in range(x.size(0)):
        h = torch.tanh(h + x[i])
        g = g + h.exp()
    first = torch.autograd.grad([h.sum()], [x])
    return first, torch.autograd.grad([g.sum()], [x])
