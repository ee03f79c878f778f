# expect: (tensor([[ 7.,  2.,  4.],
# expect:         [ 6.,  8., 10.]]), [6, 2], tensor(0.), [24, 1, 8, 2], ((tensor([], size=(0, 2)), tensor([], size=(0, 2, 2))), (tensor([], size=(2, 0)), tensor([], size=(2, 0, 0))), (tensor([1., 1.]), tensor([]))), (tensor([[0.]]), tensor([[1.7000e+38]])))
def main():
    # A format that the strides suggest already is no reason for a copy.
    gaps = torch.arange(12.0).view(2, 6)[:, ::2]
    same = gaps.to(torch.float32, memory_format=torch.contiguous_format)
    same[0, 0] = 7.0
    image = torch.arange(24.0).view(1, 2, 3, 4)
    last = image.to(torch.float32, memory_format=torch.channels_last)
    last[0, 0, 0, 0] = 9.0
    empty = torch.symeig(torch.zeros(0, 2, 2)), torch.symeig(torch.zeros(2, 0, 0)), torch.symeig(torch.eye(2))
    huge = torch.tensor([3.4e38])
    outer = torch.addr(torch.zeros(1, 1), huge, huge, beta=0, alpha=0.0), torch.addr(torch.zeros(1, 1), huge, torch.tensor([2.0]), alpha=0.25)
    return gaps, same.stride(), image[0, 0, 0, 0], last.stride(), empty, outer
