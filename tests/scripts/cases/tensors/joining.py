# expect: (tensor([[1., 1.],
# expect:         [1., 1.],
# expect:         [0., 0.],
# expect:         [0., 0.]]), tensor([[1., 1., 0., 0.],
# expect:         [1., 1., 0., 0.]]), [2, 2, 2], tensor([0, 1, 2]), tensor([3, 4, 5]), [tensor([0, 1]), tensor([2, 3]), tensor([4])], tensor([0, 1, 2, 0, 1, 2]))
def main():
    x = torch.ones(2, 2)
    y = torch.zeros(2, 2)
    a, b = torch.chunk(torch.arange(6), 2)
    return torch.cat([x, y]), torch.cat((x, y), dim=1), torch.stack([x, y]).shape, a, b, torch.split(torch.arange(5), 2), torch.arange(3).repeat(2)
