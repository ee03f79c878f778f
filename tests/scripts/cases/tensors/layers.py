# expect: (tensor([[[[45., 54.],
# expect:           [81., 90.]]]]), tensor([[[[ 5.,  7.],
# expect:           [13., 15.]]]]), tensor([[3.5000]]), tensor([[[[ 2.5000,  4.5000],
# expect:           [10.5000, 12.5000]]]]))
def main():
    x = torch.arange(16.0).view(1, 1, 4, 4)
    w = torch.ones(1, 1, 3, 3)
    y = torch.conv2d(x, w)
    return y, torch.nn.functional.max_pool2d(x, 2), torch.nn.functional.linear(torch.ones(1, 2), torch.tensor([[1.0, 2.0]]), torch.tensor([0.5])), torch.nn.functional.avg_pool2d(x, 2)
