# expect: (tensor([[[[0., 0., 2., 2., 4., 4.]]]]), tensor([[[[[0., 0., 2., 3., 4., 0.]]]]]))
def main():
    # Half a step from two elements: to the even one in two dimensions, away from zero in three.
    line = torch.arange(5.0)
    ties = torch.tensor([-1.0, -0.6, -0.2, 0.2, 0.6, 1.0])
    flat = torch.stack([ties, torch.zeros(6)], 1)[None, None]
    deep = torch.stack([ties, torch.zeros(6), torch.zeros(6)], 1)[None, None, None]
    return torch.nn.functional.grid_sample(line[None, None, None], flat, "nearest", "zeros", False), torch.nn.functional.grid_sample(line[None, None, None, None], deep, "nearest", "zeros", False)
