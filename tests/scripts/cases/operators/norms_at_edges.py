# expect: (tensor([0.5000, 2.0000, 4.0000]), tensor([ 1., -2.,  3.]), tensor([0.]), [0, 3, 2], tensor([1., 1., 1.]))
def main():
    v = torch.tensor([0.5, -2.0, 4.0])
    g = torch.tensor([1.0, 2.0, 3.0])
    one = torch.tensor([7.383086])
    normalized = torch.native_layer_norm(one, [1], torch.tensor([5.471716]), None, 1e-05)
    empty = torch.zeros(0, 3, 2)
    mean = torch.ones(3)
    batch = torch.batch_norm(empty, None, None, mean, mean, True, 0.1, 1e-5, False)
    return torch.norm_except_dim(v), torch._weight_norm(v, g), normalized[0] * 1e5, batch.shape, mean
