# expect: (tensor([-0.3000,  0.0000,  0.0000,  0.0000,  0.2000,  0.3000,  1.2000, -0.3000]), tensor([-1.0000,  0.0000,  0.0000,  0.0000,  0.2500,  0.2500,  1.7500, -2.0000]), tensor([[-0.8000,  0.0000,  0.0000],
# expect:         [ 0.0000,  0.2500,  0.2500]]), tensor([[-0.8000,  0.0000,  0.0000],
# expect:         [ 0.0000,  0.2500,  0.2500]]))
def main():
    x = torch.tensor([-1.0, -0.05, 0.0, 0.05, 0.15, 0.26, 9.0, float("nan")])
    a = torch.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 15)
    b = torch.fake_quantize_per_tensor_affine(x, 0.25, 0, -8, 7)
    rows = x[:6].view(2, 3)
    scale = torch.tensor([0.1, 0.25])
    c = torch.fake_quantize_per_channel_affine(rows, scale, torch.tensor([0, 1], dtype=torch.int32), 0, -8, 7)
    d = torch._fake_quantize_learnable_per_channel_affine(rows, scale, torch.tensor([0.4, 1.6]), 0, -8, 7, 1.0)
    return a, b, c, d
