# expect: (tensor([[ 0,  1,  2,  3],
# expect:         [ 4,  5,  6,  7],
# expect:         [ 8,  9, 10, 11]]), tensor([[ 4,  5,  6,  7],
# expect:         [16, 17, 18, 19]]), tensor([[ 3,  7, 11],
# expect:         [15, 19, 23]]), tensor(23), tensor([[[ 1,  2],
# expect:          [ 9, 10]],
# expect: 
# expect:         [[13, 14],
# expect:          [21, 22]]]), tensor([[[ 0,  1,  2,  3],
# expect:          [ 8,  9, 10, 11]],
# expect: 
# expect:         [[12, 13, 14, 15],
# expect:          [20, 21, 22, 23]]]), tensor([21, 22, 23]), tensor([[0, 1, 2, 3]]), tensor([ 0, 10]), tensor([20, 21, 22, 23]))
def main():
    x = torch.arange(24).view(2, 3, 4)
    i = torch.tensor([0, 2])
    return x[0], x[:, 1], x[..., -1], x[1, 2, 3], x[:, ::2, 1:3], x[:, i], x[x > 20], x[None, 0, 0], x[0, i, i], x[-1, -1]
