# expect: ((tensor([[1., 0., 4.],
# expect:         [0., 3., 0.],
# expect:         [2., 0., 0.]]), tensor([[1., 0., 2.],
# expect:         [0., 3., 0.],
# expect:         [4., 0., 0.]]), tensor([nan, nan, 1.]), tensor([0, 0, 1])), [24, 12, 4, 1], [[2, 3, 0], [2, 3, 0]], (tensor([[0, 1],
# expect:         [1, 0]]), tensor([[1, 0],
# expect:         [3, 1]]), tensor([[1, 2],
# expect:         [0, 4]])), [tensor([ 3,  2,  1,  0,  0,  0, -1], dtype=torch.int32), tensor([-10,  -6,  -3,   0,   3,   6,  10])])
def main():
    x = torch.zeros(3, 3).t()
    mask = torch.tensor([[True, False, True], [False, True, False], [True, False, False]])
    x.masked_scatter_(mask, torch.arange(1.0, 10.0))
    y = torch.zeros(3, 3).t().masked_scatter(mask, torch.arange(1.0, 10.0))
    rows = torch.tensor([[math.nan, 1.0, 2.0], [math.nan, math.nan, 1.0], [1.0, 1.0, math.nan]])
    modes = torch.mode(rows)
    whole = torch.tensor([[1, 2], [3, 4]])
    return (
        (x, y, modes[0], modes[1]),
        torch.ones(1, 2, 3, 4).contiguous(memory_format=torch.preserve_format).stride(),
        [torch.max_pool1d(torch.ones(2, 3, 4), [5]).shape, torch.max_pool1d(torch.ones(2, 3, 4), [3], [2], [0], [2]).shape],
        torch.lu_unpack(whole, torch.tensor([2, 2], dtype=torch.int32)),
        [torch.linspace(3, -1, 7, dtype=torch.int32), torch.linspace(-10, 10, 7, dtype=torch.int64)],
    )
