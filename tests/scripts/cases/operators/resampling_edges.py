# expect: ([tensor([[[   nan,    inf,    inf,    inf,    inf, 2.2500, 2.7500,   -inf,
# expect:             -inf,   -inf,   -inf, 5.0000]]]), tensor([[[   nan,    inf,    inf, 2.5000,   -inf,   -inf,   -inf]]]), tensor([[[1., nan, 2., 3., nan, 5.]]]), tensor([[[[nan, nan, nan,  3.],
# expect:           [-1.,  1., nan, nan]]]]), tensor([[[[nan, nan],
# expect:           [nan, nan],
# expect:           [nan, nan]]]]), tensor([[[[   nan,    nan],
# expect:           [   inf,    nan],
# expect:           [0.1250,    nan]]]])], tensor([0.0000e+00, 0.0000e+00, 0.0000e+00, 0.0000e+00, 1.1921e+00, 1.0000e+07]), [tensor([nan, nan, nan, 0., 0., nan]), tensor([nan, nan, nan, 0., 0., nan]), tensor([0., 0., 0., 0., 0., 0.]), tensor([0., 0., 0., 0., 0., 0.]), tensor([nan, nan, nan, 0., 0., nan]), tensor([nan, nan, nan, 0., 0., nan]), tensor([ 4.5000,  2.0000,  4.9500, 11.0000,  0.0000,  1.5000]), tensor([ 4.5000,  2.0000,  5.1000, 11.0000,  0.0000,  1.7500]), tensor([ 6.,  2.,  6., 11.,  0.,  2.]), tensor([ 6.,  2.,  6., 11.,  0.,  2.]), tensor([nan, nan, nan, 11.,  0., nan]), tensor([    nan,     nan,     nan, 11.2812, -0.2812,     nan]), tensor([4.5000, 0.0000, 4.9500, 9.0000, 0.0000, 1.5000]), tensor([4.5000, 0.0000, 5.1000, 9.0000, 0.0000, 1.7500]), tensor([6., 0., 6., 9., 0., 2.]), tensor([6., 0., 6., 9., 0., 2.]), tensor([nan, nan, nan, 9., 0., nan]), tensor([    nan,     nan,     nan,  9.5625, -0.5625,     nan])])
def main():
    line = torch.tensor([[[1.0, math.inf, 2.0, 3.0, -math.inf, 5.0]]])
    plane = torch.tensor([[[[1.0, 2.0, 3.0], [4.0, math.inf, 0.5], [-1.0, 2.0, math.nan]]]])
    resized = [
        torch.nn.functional.interpolate(line, scale_factor=2.0, mode="linear", align_corners=False),
        torch.nn.functional.interpolate(line, size=7, mode="linear", align_corners=True),
        torch.nn.functional.interpolate(line, scale_factor=1.0, mode="linear", align_corners=False),
        torch.nn.functional.interpolate(plane, size=[2, 4], mode="bilinear", align_corners=True),
        torch.nn.functional.interpolate(plane, size=[3, 2], mode="bicubic", align_corners=False),
        torch.nn.functional.interpolate(plane, size=[3, 2], mode="bilinear", antialias=True),
    ]
    # A last place that rounding would move into the middle.
    last = torch.nn.functional.interpolate(torch.eye(6).unsqueeze(0), size=7, mode="linear", align_corners=True)
    grid = torch.tensor([[[[math.nan, 0.0], [math.inf, -1.0], [-math.inf, 0.1], [1e30, 1.0], [-1e10, -1.0], [0.5, math.nan]]]])
    image = torch.arange(12.0).view(1, 1, 4, 3)
    sampled: List[Tensor] = []
    for padding in ["zeros", "border", "reflection"]:
        for mode in ["bilinear", "nearest", "bicubic"]:
            for align in [True, False]:
                sampled.append(torch.nn.functional.grid_sample(image, grid, mode, padding, align).flatten())
    return resized, last[0, :, -1] * 1e7, sampled
