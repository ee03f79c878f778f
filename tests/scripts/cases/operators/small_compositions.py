# expect: (tensor([[3., 0.],
# expect:         [0., 0.]]), tensor([4, 0]), tensor([[[1., 1., 1.],
# expect:          [1., 1., 1.]],
# expect: 
# expect:         [[1., 1., 1.],
# expect:          [7., 7., 7.]]]), tensor([[ -4.,   2.],
# expect:         [-10.,  -4.]]), tensor([[ 1.,  1.],
# expect:         [-5.,  1.]]), tensor([[[[ 9., 10., 11.,  9.],
# expect:           [13., 14., 15., 13.],
# expect:           [ 9., 10., 11.,  9.]]]]), tensor([[ 1.,  1.],
# expect:         [-5.,  1.]]))
def main():
    a = torch.tensor([[1.0, -2.0], [3.0, float("nan")]])
    b = torch.tensor([[1.0, 1.0], [-5.0, 1.0]])
    padded = torch._C._nn.pad_sequence([torch.ones(2, 3), torch.ones(1, 3)], True, 7.0)
    product = torch.einsum(b, [0, 1], b, [1, 2], [0, 2])
    flat = torch._C._nn.flatten_dense_tensors([a, b])
    parts = torch._C._nn.unflatten_dense_tensors(flat, [b, b])
    around = torch.nn.functional.pad(torch.arange(16.0).view(1, 1, 4, 4), [-1, 1, -2, 1], "circular")
    return torch._add_relu(a, b, alpha=2), torch._add_relu(torch.tensor([3, -3]), torch.tensor([1, 1])), padded, product, parts[1], around, torch.diff(b, 0, 0, None, b)
