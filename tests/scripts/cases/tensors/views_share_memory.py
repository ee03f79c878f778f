# expect: (tensor([[1., 9., 1.],
# expect:         [0., 0., 5.]]), tensor([1., 9., 1.]), tensor([1., 9., 1., 0., 0., 5.]))
def main():
    x = torch.zeros(2, 3)
    row = x[0]
    row.add_(1)
    x.t()[2, 1] = 5.0
    flat = x.view(6)
    flat[1] = 9.0
    copy = x.clone()
    copy.fill_(0)
    return x, row, flat
