# expect: tensor([[101.,   1.,   1.],
# expect:         [ 99.,   5.,   6.],
# expect:         [107.,  -1.,   7.]])
def main():
    x = torch.zeros(3, 3)
    x[0] = 1
    x[1, 1:] = torch.tensor([5.0, 6.0])
    x[2, torch.tensor([0, 2])] = 7
    x[x == 0] = -1
    x[:, 0] += 100
    return x
