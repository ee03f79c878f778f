# expect: (tensor([5., 5., 5.]), tensor([5.6250, 6.6250, 7.6250]), tensor([11.0938, 12.8438, 14.5938]), tensor([17.5052, 20.3802, 23.2552]), tensor([3.7500, 5.7500, 7.7500]), tensor([ 6.7969,  9.6719, 12.5469]), tensor([26.6399, 26.6399, 26.6399]), [2, 3, 4], [2, 3, 4])
# What reads the statistics before a layer trains sees the old ones, what reads them behind it the new ones.
def main():
    x = torch.arange(24.0).view(2, 3, 4)
    m = torch.full([3], 5.0)
    v = torch.full([3], 2.0)
    a = m + 0.0
    torch.batch_norm(x, None, None, m, v, True, 0.25, 0.001, True)
    b = m + 0.0
    y = torch.batch_norm(x, None, None, m, v, True, 0.25, 0.001, True)
    c = m * 1.0 + a
    torch.instance_norm(x, None, None, m, v, True, 0.5, 0.001, True)
    d = m * 1.0 + v
    fresh = torch.zeros([3])
    z, _, _ = torch.native_batch_norm(x, None, None, fresh, v, True, 0.5, 0.001)
    return a, b, c, d, fresh, m, v, y.size(), z.size()
