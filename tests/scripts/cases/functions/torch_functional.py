# expect: ([tensor(5.4772), tensor(5.4772), tensor(5.4772), tensor([4., 6.]), tensor([[2.],
# expect:         [4.]]), tensor(7.0711), tensor([3.0755, 4.2691], dtype=torch.float64), tensor(5.4772), tensor([2.2361, 5.0000]), tensor([2.2361, 5.0000])], [tensor([[ 1600,  1800,  2800,  4400,  6000,  7600,  9200, 10200, 10400],
# expect:         [  683,   836,  1045,  1045,  1045,  1045,  1045,   836,   683],
# expect:         [    0,   200,   566,   566,   566,   566,   566,   200,     0],
# expect:         [  117,   143,   433,   433,   433,   433,   433,   143,   117],
# expect:         [    0,   200,   400,   400,   400,   400,   400,   200,     0]]), tensor([[[ 450,    0],
# expect:          [1050,    0],
# expect:          [1650,    0],
# expect:          [2250,    0],
# expect:          [2850,    0],
# expect:          [3450,    0],
# expect:          [4050,    0]],
# expect: 
# expect:         [[-200,   50],
# expect:          [-300,  -50],
# expect:          [-400, -150],
# expect:          [-500, -250],
# expect:          [-600, -350],
# expect:          [-700, -450],
# expect:          [-800, -550]],
# expect: 
# expect:         [[ -50,    0],
# expect:          [ -50,    0],
# expect:          [ -50,    0],
# expect:          [ -50,    0],
# expect:          [ -50,    0],
# expect:          [ -50,    0],
# expect:          [ -50,    0]]]), tensor([[[  25,  100,  225,  375,  525,  675,  825,  775,  500],
# expect:          [   0,  -50, -100, -125, -150, -175, -200, -225,  150],
# expect:          [ -25,    0,  -25,  -25,  -25,  -25,  -25,  175, -200]],
# expect: 
# expect:         [[ 625, 1100, 1425, 1575, 1725, 1875, 2025, 1775, 1100],
# expect:          [-400, -450, -300, -325, -350, -375, -400, -425,  350],
# expect:          [ 175, -200,  -25,  -25,  -25,  -25,  -25,  375, -400]]]), tensor([   0,  100,  200,  300,  400,  500,  600,  700,  800,  900, 1000, 1100,
# expect:         1200, 1300, 1400, 1500])], tensor([[[[ 6.,  8.,  9.],
# expect:           [16., 18., 19.],
# expect:           [21., 23., 24.]]]]), tensor([[[[ 6.,  8.,  9.],
# expect:           [21., 23., 24.]]]]), tensor([[[[ 6,  8,  9],
# expect:           [21, 23, 24]]]]), tensor([[[[21., 23.],
# expect:           [29., 31.]],
# expect: 
# expect:          [[53., 55.],
# expect:           [61., 63.]]]]), tensor([[1., 1.],
# expect:         [1., 2.]]))
import torch
import torch.nn.functional as F


def main():
    x = torch.tensor([[1.0, -2.0], [3.0, 4.0]])
    y = torch.empty(0)
    torch.norm(x, 2, [1], False, y)
    norms = [
        torch.norm(x),
        torch.norm(x, 2),
        torch.norm(x, p="fro", dim=[0, 1]),
        torch.norm(x, p=1, dim=0),
        torch.norm(x, p=float("inf"), dim=1, keepdim=True),
        torch.norm(x, "nuc"),
        torch.norm(x, p=2.5, dim=[0], dtype=torch.float64),
        torch.norm(x, None),
        torch.norm(x, dim=1),
        y,
    ]
    signal = torch.arange(16.0)
    window = torch.tensor([0.5, 1.0, 1.0, 0.5])
    spectra = [
        torch.stft(signal, 8, return_complex=True).abs(),
        torch.stft(signal, 4, 2, 4, window, False, return_complex=False),
        torch.stft(signal.view(2, 8), 4, window=window, pad_mode="constant", normalized=True, return_complex=True).real,
        torch.istft(torch.stft(signal, 8, return_complex=True), 8),
    ]
    samples = torch.full([1, 1, 2], 0.5)
    pooled = F.fractional_max_pool2d(torch.arange(25.0).view(1, 1, 5, 5), 2, output_size=3, _random_samples=samples)
    a, b = F.fractional_max_pool2d(
        torch.arange(25.0).view(1, 1, 5, 5), [2, 2], output_ratio=(0.5, 0.6), return_indices=True, _random_samples=samples
    )
    c = F.fractional_max_pool3d(
        torch.arange(64.0).view(1, 4, 4, 4), 2, output_ratio=[0.5, 0.5, 0.5], _random_samples=torch.full([1, 1, 3], 0.2)
    )
    padded = torch.nn.utils.rnn.pad_sequence([torch.ones(2), torch.ones(1)], batch_first=True, padding_value=2.0)
    spectra = [(s * 100.0).round().to(torch.int64) for s in spectra]
    return norms, spectra, pooled, a, b, c, padded
