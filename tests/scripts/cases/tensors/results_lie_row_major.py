# expect: ([tensor([ 2., 15.,  5., 16.,  9., 32.]), tensor([ 2., 15.,  5., 16.,  9., 32.]), tensor([ 2., 15.,  5., 16.,  9., 32.]), tensor([0., 3., 1., 7., 2., 7.]), tensor([ 1.,  8.,  2., 16.,  4., 32.]), tensor([9., 3., 1., 9., 2., 5.]), tensor([0., 3., 1., 3., 2., 5.]), tensor([0., 3., 1., 7., 2., 5.]), tensor([ 0.,  3.,  1., 12.,  2.,  5.]), tensor([0., 6., 1., 4., 2., 5.]), tensor([1., 4., 1., 4., 2., 5.]), tensor([ 0., 12.,  1.,  4.,  2.,  5.]), tensor([0., 1., 0., 1., 0., 1.]), tensor([1., 0., 0., 1., 1., 1.])], [[1, 3], [1, 3], [1, 3], [1, 3], [1, 3], [1, 3]])
def fused(x: torch.Tensor) -> torch.Tensor:
    y = (x * 2).masked_fill(x > 3, -1.0) + 1
    return y.view(-1) + (2.0 ** x).view(-1)


def in_place(x: torch.Tensor) -> List[int]:
    y = x.clone()
    z = (y.masked_fill_(y > 3, 0.0) * 2).relu()
    return z.stride()


def main():
    x = torch.arange(6.0).reshape(2, 3).t()
    first = torch.tensor([0])
    strides: List[List[int]] = []
    results = [fused(x), fused(x), fused(x)]
    for i in range(3):
        strides.append(in_place(x))
    results.append(x.masked_fill(x > 3, torch.tensor(7.0)).view(-1))
    results.append(torch.pow(2.0, x).view(-1))
    results.append(x.scatter(0, torch.tensor([[0, 1]]), 9.0).view(-1))
    results.append(x.scatter(0, torch.tensor([[0, 1]]), x).view(-1))
    results.append(x.scatter_add(0, torch.tensor([[0, 1]]), x).view(-1))
    results.append(x.scatter_reduce(0, torch.tensor([[0, 1]]), x, "prod").view(-1))
    results.append(x.index_add(0, first, x[:1]).view(-1))
    results.append(x.index_copy(0, first, x[1:2]).view(-1))
    results.append(x.index_reduce(0, first, x[1:2], "prod").view(-1))
    torch.manual_seed(3)
    results.append((x * 0.1).bernoulli().view(-1))
    results.append(x.bernoulli(0.5).view(-1))
    strides.append(x.index_fill(0, first, 1.0).stride())
    strides.append(x.where(x > 3, x).stride())
    strides.append((x + 1).stride())
    return results, strides
