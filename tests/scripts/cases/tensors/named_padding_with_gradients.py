# expect: (tensor([[[ 0.,  2.,  4.,  6., 14.]]]), tensor([[[2., 4., 6.]]]), tensor([[[7., 7., 6., 5., 1.]]]), tensor([[[26., 39., 40.]]]))
# The padding by name means the same where a gradient is wanted.
def main():
    x = torch.arange(1.0, 6.0).reshape(1, 1, 5).requires_grad_()
    w = torch.tensor([[[1.0, 2.0, -1.0]]]).requires_grad_()
    same = torch.conv1d(x, w, None, 1, "same")
    valid = torch.conv1d(x, w, None, 1, "valid")
    (same.sum() * 2 + valid.sum()).backward()
    return same.detach(), valid.detach(), x.grad, w.grad
