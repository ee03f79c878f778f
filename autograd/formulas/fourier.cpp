// Fourier transforms. All are made of three: complex to complex, real to complex, and the real
// result of half a Hermitian spectrum. The adjoint of a transform is the other direction, scaled
// alike.
#include "autograd/formula.h"

namespace wick::autograd {

namespace {

constexpr HelperText kFourierHelpers[] = {
    // Cut or padded with zeros to sizes along dimensions.
    {"fft_fitted", R"(
def fft_fitted(t: Tensor, dims: List[int], sizes: List[int]) -> Tensor:
    out = t
    for i in range(len(dims)):
        d = dims[i]
        have = out.size(d)
        if have > sizes[i]:
            out = out.narrow(d, 0, sizes[i])
        elif have < sizes[i]:
            pad = [0] * (2 * (out.dim() - d))
            pad[-1] = sizes[i] - have
            out = torch.constant_pad_nd(out, pad, 0)
    return out
)"},
    {"fft_r2c_gradient", R"(
def fft_r2c_gradient(grad: Tensor, size: List[int], dim: List[int], normalization: int, onesided: bool) -> Tensor:
    dims = [d if d >= 0 else d + len(size) for d in dim]
    whole = fft_fitted(grad, [dims[-1]], [size[dims[-1]]]) if onesided else grad
    return torch.real(torch._fft_c2c(whole, dims, normalization, False))
)"},
    // What is in the middle of the half that was given counts twice.
    {"fft_c2r_gradient", R"(
def fft_c2r_gradient(grad: Tensor, size: List[int], dim: List[int], normalization: int, last_dim_size: int) -> Tensor:
    dims = [d if d >= 0 else d + len(size) for d in dim]
    last = dims[-1]
    out = torch._fft_r2c(grad, dims, normalization, True)
    place = torch.arange(out.size(last), device=out.device)
    twice = (place > 0) & (place <= last_dim_size - out.size(last))
    shape = [1] * len(size)
    shape[last] = out.size(last)
    return fft_fitted(out * torch.where(twice, 2.0, 1.0).to(grad.dtype).reshape(shape), [last], [size[last]])
)"},
};

constexpr FormulaText kFourierFormulas[] = {
    {"aten::_fft_c2c", "self: torch._fft_c2c(grad, dim, normalization, not forward)"},
    {"aten::_fft_r2c", "self: fft_r2c_gradient(grad, self_size, dim, normalization, onesided)"},
    {"aten::_fft_c2r",
     "self: fft_c2r_gradient(grad, self_size, dim, normalization, last_dim_size)"},
    // Their kernels call those above, and others.
    {R"(aten::fft_fft, aten::fft_ifft, aten::fft_rfft, aten::fft_irfft, aten::fft_hfft, aten::fft_ihfft,
         aten::fft_fft2, aten::fft_ifft2, aten::fft_rfft2, aten::fft_irfft2, aten::fft_hfft2,
         aten::fft_ihfft2, aten::fft_fftn, aten::fft_ifftn, aten::fft_rfftn, aten::fft_irfftn,
         aten::fft_hfftn, aten::fft_ihfftn, aten::stft, aten::stft.center, aten::istft)",
     "others"},
    {"wick::overlap_add", "frames: grad.unfold(1, frames_size[2], hop)"},
    {"aten::fft_fftshift", "self: torch.fft.ifftshift(grad, dim)"},
    {"aten::fft_ifftshift", "self: torch.fft.fftshift(grad, dim)"},
};
const RegisterFormulas kFourierRegistered(kFourierFormulas, kFourierHelpers);

}  // namespace

}  // namespace wick::autograd
