# expect: (True, tensor([ 1.5941e+02,  1.7031e+02,  3.3727e+01,  9.0145e+01,  1.5473e+02,
# expect:          1.3956e+03,  1.5479e+00,  5.4774e-02, -6.5869e-01, -1.1914e+00,
# expect:         -8.4403e-01,  4.5926e-01,  1.1088e+00,  9.7623e-01, -2.7238e-01,
# expect:         -1.0371e+00, -1.0889e+00,  8.0054e-02,  9.4478e-01,  1.1797e+00,
# expect:          1.1388e-01, -8.3349e-01, -1.2470e+00, -3.0553e-01,  7.0552e-01,
# expect:          1.2893e+00,  4.9106e-01, -5.6344e-01, -1.3058e+00, -6.6677e-01,
# expect:          4.1007e-01,  1.2961e+00,  8.2913e-01, -2.4850e-01, -1.2605e+00,
# expect:         -9.7490e-01,  8.1954e-02,  1.1997e+00,  1.1012e+00,  8.6232e-02,
# expect:         -1.1149e+00, -1.2054e+00, -1.8312e-01, -6.6876e-01,  1.2753e+00,
# expect:          5.0273e-01,  4.7210e-01, -2.5524e+00,  1.7500e-01,  1.6952e+00,
# expect:          5.0532e-01, -2.2865e+00], dtype=torch.float64))
# With a gradient the results are those without one; and so are those of short-time transforms.
def main():
    same: List[bool] = []
    gradients: List[Tensor] = []
    for norm in ["backward", "ortho", "forward"]:
        x = torch.arange(24.0).sin().reshape([2, 3, 4]).double().requires_grad_()
        plain = x.detach()
        z = torch.complex(plain, plain.cos()).requires_grad_()
        w = z.detach()
        pairs = [
            (torch.fft.fft(x, 5, 1, norm), torch.fft.fft(plain, 5, 1, norm)),
            (torch.fft.ifft(z, 2, 1, norm), torch.fft.ifft(w, 2, 1, norm)),
            (torch.fft.rfft(x, 7, norm=norm), torch.fft.rfft(plain, 7, norm=norm)),
            (torch.fft.irfft(z, 6, 1, norm), torch.fft.irfft(w, 6, 1, norm)),
            (torch.fft.irfft(x, norm=norm), torch.fft.irfft(plain, norm=norm)),
            (torch.fft.hfft(z, 5, norm=norm), torch.fft.hfft(w, 5, norm=norm)),
            (torch.fft.ihfft(x, norm=norm), torch.fft.ihfft(plain, norm=norm)),
            (torch.fft.fft2(x, norm=norm), torch.fft.fft2(plain, norm=norm)),
            (torch.fft.ifftn(z, [2, -1], [0, 2], norm), torch.fft.ifftn(w, [2, -1], [0, 2], norm)),
            (torch.fft.rfftn(x, [3, 5], norm=norm), torch.fft.rfftn(plain, [3, 5], norm=norm)),
            (torch.fft.irfft2(z, norm=norm), torch.fft.irfft2(w, norm=norm)),
            (torch.fft.irfftn(z, [2, 2, 9], norm=norm), torch.fft.irfftn(w, [2, 2, 9], norm=norm)),
        ]
        total = torch.zeros([], dtype=torch.float64)
        for made, expected in pairs:
            same.append(torch.equal(made.detach(), expected))
            weights = torch.arange(float(made.numel())).cos().reshape(made.size()).double()
            total = total + (torch.abs(made) ** 2 * weights).sum()
        total.backward()
        for gradient in [x.grad, z.grad]:
            assert gradient is not None
            gradients.append(torch.abs(gradient).sum())
    y = torch.arange(40.0).sin().double().requires_grad_()
    window = (torch.hann_window(6, dtype=torch.float64) + 0.5).requires_grad_()
    s = torch.stft(y, 8, 3, 6, window, return_complex=True)
    t = torch.stft(y.detach(), 8, 3, 6, window.detach(), return_complex=True)
    back = torch.istft(s * torch.arange(5.0).reshape([5, 1]), 8, 3, 6, window, length=42)
    same += [torch.equal(s.detach(), t), torch.equal(back.detach(), torch.istft(t * torch.arange(5.0).reshape([5, 1]), 8, 3, 6, window.detach(), length=42))]
    (back * torch.arange(42.0).cos()).sum().backward()
    for each in [y.grad, window.grad]:
        assert each is not None
        gradients.append(each)
    return all(same), torch.cat([g.reshape([-1]) for g in gradients])
