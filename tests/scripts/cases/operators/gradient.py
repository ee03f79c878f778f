# expect: [tensor([ 1.0000,  1.5000,  3.0000, -0.5000, -5.0000]), tensor([  2.,   3.,   6.,  -1., -10.]), tensor([ 0.5000,  1.5000,  3.0000, -0.5000, -9.5000]), tensor([ 2.0000,  1.8333,  2.9333,  2.9500, -1.2500]), tensor([ 2.1667,  1.8333,  2.9333,  2.9500, -5.4500]), tensor([[ 0.5000,  1.0000,  2.0000,  2.5000],
# expect:         [ 4.5000,  5.0000,  6.0000,  6.5000],
# expect:         [ 8.5000,  9.0000, 10.0000, 10.5000]]), tensor([[ 8., 12., 16., 20.],
# expect:         [16., 20., 24., 28.],
# expect:         [24., 28., 32., 36.]])]
def main():
    x = torch.tensor([1.0, 2.0, 4.0, 8.0, 3.0])
    out = [torch.gradient(x)[0], torch.gradient(x, spacing=0.5)[0], torch.gradient(x, edge_order=2)[0]]
    points = torch.tensor([0.0, 0.5, 2.0, 3.0, 7.0])
    out.append(torch.gradient(x, spacing=[points])[0])
    out.append(torch.gradient(x, spacing=[points], edge_order=2)[0])
    grid = torch.arange(12).view(3, 4) ** 2
    both = torch.gradient(grid, spacing=2, dim=[1, 0])
    out.extend(both)
    return out
