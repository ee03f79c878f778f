// Fourier transforms. All are made of three: complex to complex, real to complex, and the real
// result of half a Hermitian spectrum. The adjoint of a transform is the other direction, scaled
// alike.
#include "autograd/formula.h"

namespace wick::autograd {

namespace {

constexpr HelperText kHelpers[] = {
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
    // What _fft_c2c and its siblings call a normalization: 1 by the root of the count, 2 by the
    // count.
    {"fft_scaling", R"(
def fft_scaling(norm: Optional[str], forward: bool) -> int:
    name = 'backward' if norm is None else norm
    if name == 'ortho':
        return 1
    if name != 'backward' and name != 'forward':
        raise RuntimeError('Invalid normalization mode: "' + name + '"')
    return 2 if (name == 'forward') == forward else 0
)"},
    {"fft_dims", R"(
def fft_dims(n: int, s: Optional[List[int]], dim: Optional[List[int]]) -> List[int]:
    if dim is not None:
        return [d if d >= 0 else d + n for d in dim]
    count = n if s is None else len(s)
    assert count <= n, 'Got shape with more values than the input tensor has dimensions.'
    return [d for d in range(n - count, n)]
)"},
    {"fft_sizes", R"(
def fft_sizes(t: Tensor, dims: List[int], s: Optional[List[int]]) -> List[int]:
    sizes = [t.size(d) for d in dims]
    if s is not None:
        assert len(s) == len(dims), 'When given, dim and shape arguments must have the same length'
        for i in range(len(s)):
            if s[i] != -1:
                sizes[i] = s[i]
    for size in sizes:
        if size < 1:
            raise RuntimeError('Invalid number of data points (' + str(size) + ') specified')
    return sizes
)"},
    {"fft_complex", R"(
def fft_complex(t: Tensor) -> Tensor:
    if t.is_complex():
        return t
    return t.to(torch.complex128 if t.dtype == torch.float64 else torch.complex64)
)"},
    {"fft_c2c_made", R"(
def fft_c2c_made(self: Tensor, s: Optional[List[int]], dim: Optional[List[int]], norm: Optional[str], forward: bool) -> Tensor:
    dims = fft_dims(self.dim(), s, dim)
    x = fft_fitted(fft_complex(self), dims, fft_sizes(self, dims, s))
    if len(dims) == 0:
        return x
    return torch._fft_c2c(x, dims, fft_scaling(norm, forward), forward)
)"},
    {"fft_r2c_made", R"(
def fft_r2c_made(self: Tensor, s: Optional[List[int]], dim: Optional[List[int]], norm: Optional[str], forward: bool) -> Tensor:
    dims = fft_dims(self.dim(), s, dim)
    assert len(dims) > 0, 'rfftn must transform at least one axis'
    x = fft_fitted(self, dims, fft_sizes(self, dims, s))
    out = torch._fft_r2c(x, dims, fft_scaling(norm, forward), True)
    return out if forward else out.conj()
)"},
    {"fft_c2r_made", R"(
def fft_c2r_made(self: Tensor, s: Optional[List[int]], dim: Optional[List[int]], norm: Optional[str], forward: bool) -> Tensor:
    dims = fft_dims(self.dim(), s, dim)
    assert len(dims) > 0, 'irfftn must transform at least one axis'
    sizes = fft_sizes(self, dims, s)
    last = 2 * (self.size(dims[-1]) - 1)
    if s is not None and s[-1] != -1:
        last = s[-1]
    if last < 1:
        raise RuntimeError('Invalid number of data points (' + str(last) + ') specified')
    sizes[-1] = last // 2 + 1
    x = fft_fitted(fft_complex(self), dims, sizes)
    return torch._fft_c2r(x.conj() if forward else x, dims, fft_scaling(norm, forward), last)
)"},
    {"fft_one", R"(
def fft_one(n: Optional[int]) -> Optional[List[int]]:
    if n is None:
        return None
    if n < 1:
        raise RuntimeError('Invalid number of data points (' + str(n) + ') specified')
    return [n]
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
    // A window of win_length elements in the middle of n_fft.
    {"stft_window", R"(
def stft_window(window: Optional[Tensor], n_fft: int, win_length: int, like: Tensor) -> Tensor:
    assert 0 < win_length and win_length <= n_fft, 'expected 0 < win_length <= n_fft'
    if window is None:
        w = torch.ones([win_length], dtype=like.dtype, device=like.device)
        if like.is_complex():
            w = torch.real(w)
    else:
        w = window
    assert w.dim() == 1 and w.size(0) == win_length, 'expected a 1D window tensor of size equal to win_length'
    left = (n_fft - win_length) // 2
    return torch.constant_pad_nd(w, [left, n_fft - win_length - left], 0)
)"},
    {"stft_made", R"(
def stft_made(self: Tensor, n_fft: int, hop_length: Optional[int], win_length: Optional[int], window: Optional[Tensor], normalized: bool, onesided: Optional[bool], return_complex: Optional[bool], align_to_window: Optional[bool]) -> Tensor:
    complex_in = self.is_complex() or (window is not None and window.is_complex())
    assert self.dim() == 1 or self.dim() == 2, 'stft: expected a 1D or 2D tensor'
    hop = n_fft // 4 if hop_length is None else hop_length
    half = (not complex_in) if onesided is None else onesided
    assert not half or not complex_in, 'Cannot have onesided output if window or input is complex'
    length = n_fft if win_length is None else win_length
    w = stft_window(window, n_fft, length, self)
    signal = self
    if align_to_window is not None and align_to_window:
        left = (n_fft - length) // 2
        signal = torch.constant_pad_nd(self, [left, n_fft - length - left], 0)
    pieces = signal.unfold(-1, n_fft, hop) * w
    scaling = 1 if normalized else 0
    if complex_in:
        out = torch._fft_c2c(pieces, [pieces.dim() - 1], scaling, True)
    else:
        out = torch._fft_r2c(pieces, [pieces.dim() - 1], scaling, half)
    out = out.transpose(-2, -1)
    wanted = complex_in if return_complex is None else return_complex
    return out if wanted else torch.view_as_real(out)
)"},
    {"stft_center_made", R"(
def stft_center_made(self: Tensor, n_fft: int, hop_length: Optional[int], win_length: Optional[int], window: Optional[Tensor], center: bool, pad_mode: str, normalized: bool, onesided: Optional[bool], return_complex: Optional[bool], align_to_window: Optional[bool]) -> Tensor:
    x = self
    if center:
        assert align_to_window is None, 'stft align_to_window should only be set when center = false.'
        wide = self.unsqueeze(0).unsqueeze(0) if self.dim() == 1 else self.unsqueeze(0)
        x = torch.nn.functional.pad(wide, [n_fft // 2, n_fft // 2], pad_mode).squeeze(0)
        if self.dim() == 1:
            x = x.squeeze(0)
    return stft_made(x, n_fft, hop_length, win_length, window, normalized, onesided, return_complex, align_to_window)
)"},
    // Overlapping windowed pieces are added and divided by the sum of the squared windows.
    {"istft_made", R"(
def istft_made(self: Tensor, n_fft: int, hop_length: Optional[int], win_length: Optional[int], window: Optional[Tensor], center: bool, normalized: bool, onesided: Optional[bool], length: Optional[int], return_complex: bool) -> Tensor:
    hop = n_fft // 4 if hop_length is None else hop_length
    given = self if self.is_complex() else torch.view_as_complex(self.contiguous())
    x = given.unsqueeze(0) if given.dim() == 2 else given
    half = (x.size(1) != n_fft) if onesided is None else onesided
    assert n_fft > 0 and x.size(1) == (n_fft // 2 + 1 if half else n_fft), 'istft: the frequency dimension does not match n_fft'
    assert hop > 0 and not (return_complex and half), 'Cannot have onesided output if window or input is complex'
    scaling = 1 if normalized else 2
    if return_complex:
        pieces = torch._fft_c2c(x.transpose(1, 2), [2], scaling, False)
        w = stft_window(window, n_fft, n_fft if win_length is None else win_length, torch.real(x))
    else:
        w = stft_window(window, n_fft, n_fft if win_length is None else win_length, torch.real(x))
        pieces = torch._fft_c2r(x.narrow(1, 0, n_fft // 2 + 1).transpose(1, 2), [2], scaling, n_fft)
    pieces = pieces * w
    frames = x.size(2)
    total = n_fft + hop * (frames - 1)
    steps = torch.arange(n_fft, device=x.device)
    places = (torch.arange(frames, device=x.device).unsqueeze(1) * hop + steps).flatten()
    sum = torch.zeros([x.size(0), total], dtype=pieces.dtype, device=pieces.device).index_add(1, places, pieces.flatten(1))
    squares = (w * w).expand(frames, n_fft).flatten()
    envelope = torch.zeros([total], dtype=w.dtype, device=w.device).index_add(0, places, squares)
    start = n_fft // 2 if center else 0
    end = total - n_fft // 2 if center else total
    if length is not None:
        end = start + length
    covered = min(end, total)
    assert start < covered, 'istft: the signal has no elements'
    shown = envelope.narrow(0, start, covered - start)
    assert float(torch.abs(shown).min()) > 1e-11, 'istft: window overlap add min: 0'
    y = sum.narrow(1, start, covered - start) / shown
    if end > covered:
        y = torch.constant_pad_nd(y, [0, end - covered], 0)
    return y.squeeze(0) if given.dim() == 2 else y
)"},
};

constexpr FormulaText kFormulas[] = {
    {"aten::_fft_c2c", "self: torch._fft_c2c(grad, dim, normalization, not forward)"},
    {"aten::_fft_r2c", "self: fft_r2c_gradient(grad, self_size, dim, normalization, onesided)"},
    {"aten::_fft_c2r",
     "self: fft_c2r_gradient(grad, self_size, dim, normalization, last_dim_size)"},
    {"aten::fft_fft", "return fft_c2c_made(self, fft_one(n), [dim], norm, True)"},
    {"aten::fft_ifft", "return fft_c2c_made(self, fft_one(n), [dim], norm, False)"},
    {"aten::fft_rfft", "return fft_r2c_made(self, fft_one(n), [dim], norm, True)"},
    {"aten::fft_irfft", "return fft_c2r_made(self, fft_one(n), [dim], norm, False)"},
    {"aten::fft_hfft", "return fft_c2r_made(self, fft_one(n), [dim], norm, True)"},
    {"aten::fft_ihfft", "return fft_r2c_made(self, fft_one(n), [dim], norm, False)"},
    {"aten::fft_fft2, aten::fft_fftn", "return fft_c2c_made(self, s, dim, norm, True)"},
    {"aten::fft_ifft2, aten::fft_ifftn", "return fft_c2c_made(self, s, dim, norm, False)"},
    {"aten::fft_rfft2, aten::fft_rfftn", "return fft_r2c_made(self, s, dim, norm, True)"},
    {"aten::fft_irfft2, aten::fft_irfftn", "return fft_c2r_made(self, s, dim, norm, False)"},
    {"aten::fft_hfft2, aten::fft_hfftn", "return fft_c2r_made(self, s, dim, norm, True)"},
    {"aten::fft_ihfft2, aten::fft_ihfftn", "return fft_r2c_made(self, s, dim, norm, False)"},
    {"aten::fft_fftshift", "self: torch.fft.ifftshift(grad, dim)"},
    {"aten::fft_ifftshift", "self: torch.fft.fftshift(grad, dim)"},
    {"aten::stft",
     "return stft_made(self, n_fft, hop_length, win_length, window, normalized, "
     "onesided, return_complex, align_to_window)"},
    {"aten::stft.center",
     "return stft_center_made(self, n_fft, hop_length, win_length, window, center, pad_mode, "
     "normalized, onesided, return_complex, align_to_window)"},
    {"aten::istft",
     "return istft_made(self, n_fft, hop_length, win_length, window, center, "
     "normalized, onesided, length, return_complex)"},
};
const RegisterFormulas registered(kFormulas, kHelpers);

}  // namespace

}  // namespace wick::autograd
