# expect: (tensor([nan, inf, -inf, 1.]), tensor([False,  True, False, False]), tensor([nan, inf, 0., -0.]), tensor([ True, False, False, False]), tensor([], size=(0, 3)), tensor(0.), tensor([0., 0., 0.]), tensor([[1., 1., 1.]]), tensor([nan, nan, nan, -0.]))
def main():
    x = torch.tensor([float('nan'), float('inf'), -float('inf'), -0.0])
    e = torch.zeros(0, 3)
    return x + 1, x > 0, torch.relu(x), torch.isnan(x), e, e.sum(), e.sum(0), torch.cat([e, torch.ones(1, 3)]), x * 0
