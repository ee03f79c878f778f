# expect: (tensor([3., 2., 4.]), tensor([ 0.0000, -3.0000,  2.5000]), tensor([ 2., -4.,  7.]), tensor([ 0.5000, -0.5000,  7.0000]), tensor([ 0., -1.,  7.]), tensor([1., 2., 0.]), tensor([ 1.0000,  4.0000, 12.2500]), tensor([-1.0000,  2.0000, -3.5000]), tensor([False, False,  True]), tensor([ True, False, False]), tensor([0.5000, 0.2500, 2.0000]))
def main():
    x = torch.tensor([1.0, -2.0, 3.5])
    y = torch.tensor([2.0, 4.0, 0.5])
    return x + y, x - 1, 2 * x, x / y, x // y, x % y, x ** 2, -x, x > y, x == 1.0, 1 / y
