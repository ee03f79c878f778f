# expect: (tensor([ 2., -6., -4.,  8.]), tensor([ 2., -6., -4.,  8.]), tensor([2., 0., 0., 8.]), True)
def main():
    x = torch.arange(4).to(torch.float32)
    y = x
    x += 1
    x.mul_(2)
    x[1:3] -= 10
    z = x.relu()
    return x, y, z, x is y
