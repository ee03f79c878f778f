# expect: (tensor([[[ 0., -3., 14., -3., 19.,  0., 24.,  0.]]]), tensor([[[[ 0., -3.,  0., 11.,  0., 19.,  0., 24.,  0.,  0.],
# expect:           [ 0.,  0.,  0.,  0.,  0.,  0.,  0.,  0.,  0.,  0.]]]]), tensor([[[10., 20., 32.],
# expect:          [15., 25., 33.]]]), tensor([[[ 22.,  62.]],
# expect: 
# expect:         [[ 46., 143.]]]))
# A transposed convolution may pad its output by its stride or more, where the kernel's points are apart.
def main():
    x = torch.arange(1.0, 7.0).reshape(1, 2, 3).requires_grad_()
    w = torch.tensor([[[1.0, 2.0]], [[-1.0, 3.0]]]).requires_grad_()
    y = torch.conv_transpose1d(x, w, None, [2], [1], [2], 1, [3])
    z = torch.conv_transpose2d(x[:, :, None], w[:, :, None], None, [1, 2], [0, 1], [1, 3], 1, [2, 4])
    (y * torch.arange(y.numel())).sum().backward()
    (z.flatten() * torch.arange(z.numel())).sum().backward()
    return y.detach(), z.detach(), x.grad, w.grad
