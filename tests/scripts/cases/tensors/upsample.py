# expect: (tensor([[[[0., 0., 1., 1.],
# expect:           [0., 0., 1., 1.],
# expect:           [2., 2., 3., 3.],
# expect:           [2., 2., 3., 3.]]]]), tensor([[[[0., 0., 1.],
# expect:           [0., 0., 1.],
# expect:           [2., 2., 3.]]]]), tensor([[[[0., 0., 1.]]]]), tensor([[[[0.0000, 0.5000, 1.0000],
# expect:           [1.0000, 1.5000, 2.0000],
# expect:           [2.0000, 2.5000, 3.0000]]]]), tensor([[[[0.0000, 0.5000, 1.0000],
# expect:           [2.0000, 2.5000, 3.0000]]]]))
def main():
    x = torch.arange(4.0).view(1, 1, 2, 2)
    return (torch.nn.functional.upsample_nearest(x, scale_factor=2.0), torch.nn.functional.upsample_nearest(x, 3), torch.nn.functional.upsample_nearest(x, [1, 3]),
            torch.nn.functional.upsample_bilinear(x, 3), torch.nn.functional.upsample_bilinear(x, [2, 3]))
