// Operators of compiled models that move, order, add up and divide elements, against the engine.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error_types.h"
#include "tests/aot/compiled.h"
#include "wick.h"

namespace wick::elements_test {
namespace {

using namespace testing_aot;
using testing::HasSubstr;

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      // Some divisors are zero, by the seed.
      {"quotients", {"4x9xi32", "9xi32"}, R"(
def main(x: Tensor, y: Tensor):
    z = y * 2 + 1
    return x // z, x % z, torch.div(x, z, rounding_mode="trunc"), torch.fmod(x, z), x // 7, x % -5, torch.remainder(100, z), torch.floor_divide(z, 9)
)"},
      {"quotients_by_zero", {"5xi32", "4xi64"}, R"(
def main(x: Tensor, y: Tensor):
    return x // y[:2].min(), x.to(torch.int64) % y[3]
)"},
      {"quotients_at_the_ends", {"3xi64"}, R"(
def main(x: Tensor):
    low = torch.tensor([-9223372036854775808, -9223372036854775807, 9223372036854775807])
    small = torch.tensor([-128, -127, 127], dtype=torch.int8)
    minus = torch.clamp(x, -1, -1)
    q = low // minus, low % minus, torch.div(low, minus, rounding_mode="trunc"), torch.fmod(low, minus)
    return q, small // minus.to(torch.int8), small % minus.to(torch.int8), low // (x + 1), small % (x + 1)
)"},
      {"quotients_of_views", {"6x4xi32"}, R"(
def main(x: Tensor):
    t = x.t()
    y = x.clone()
    y[::2].floor_divide_(3)
    y[:, 1] %= 4
    return t // (torch.abs(t[0]) + 1), (x.to(torch.uint8) // 7), y, x.to(torch.float64) // 3
)"},
      // Zeros have signs too.
      {"signs", {"4x5xf32", "5xf64", "6xi32"}, R"(
def main(x: Tensor, y: Tensor, k: Tensor):
    s = torch.signbit(x), torch.signbit(x * 0), torch.signbit(x.half() * 0), torch.signbit(x.bfloat16())
    return s, torch.signbit(y), torch.signbit(y * 0), torch.signbit(k), torch.copysign(y.abs(), x[0])
)"},
      {"resampled", {"2x3x4x5xf32"}, R"(
def main(x: Tensor):
    f = torch.nn.functional.interpolate
    a = f(x, scale_factor=2.0), f(x, size=[7, 3]), f(x, size=[6, 9], mode="bilinear", align_corners=True)
    b = f(x, scale_factor=1.7, mode="bilinear"), f(x, size=[8, 2], mode="bicubic", align_corners=False)
    c = f(x, size=[2, 3], mode="bilinear", antialias=True), f(x, size=[3, 9], mode="nearest-exact")
    d = f(x.to(memory_format=torch.channels_last), scale_factor=2.0, mode="bilinear")
    e = f(x[0], size=[9], mode="linear"), f(x.double(), size=[5, 5], mode="bilinear"), f(x.unsqueeze(0), size=[3, 5, 2], mode="trilinear")
    return a, b, c, d, e
)"},
      {"grids", {"2x3x5x4xf32", "2x3x6x2xf32", "1x2x3x4x5xf64", "1x2x2x3x3xf64"}, R"(
def main(x: Tensor, g: Tensor, y: Tensor, h: Tensor):
    out: List[Tensor] = []
    wild = torch.where(g > 2.5, torch.full_like(g, float("nan")), g * 0.6)
    for padding in ["zeros", "border", "reflection"]:
        for align in [True, False]:
            for mode in ["bilinear", "nearest", "bicubic"]:
                out.append(torch.nn.functional.grid_sample(x, wild, mode, padding, align))
            for mode in ["bilinear", "nearest"]:
                out.append(torch.nn.functional.grid_sample(y, h * 0.5, mode, padding, align))
    return out
)"},
      {"patches", {"2x3x6x5xf32"}, R"(
def main(x: Tensor):
    columns = torch.nn.functional.unfold(x - 1, [2, 3], padding=[1, 0], stride=[2, 1])
    return columns, torch.nn.functional.fold(columns * 2, [6, 5], [2, 3], padding=[1, 0], stride=[2, 1])
)"},
      {"cumulative", {"3x4x5xf32", "7xi32"}, R"(
def main(x: Tensor, n: Tensor):
    nan = torch.where(x > 2.5, torch.full_like(x, float("nan")), x)
    a = torch.cumsum(x, 1), torch.cumprod(x, -1), torch.cumsum(x.t() if x.dim() == 2 else x.double(), 0)
    b = torch.cumsum(n, 0), torch.cumprod(n, 0), torch.cumsum(n > 0, 0), torch.cumsum(n, 0, dtype=torch.float32)
    return a, b, torch.cummax(nan, 2), torch.cummin(nan, 0), torch.cummax(n, 0), torch.logcumsumexp(x, 1), torch.cumsum(x[0, 0, 0], 0)
)"},
      {"sorted", {"3x40xf32", "6x11xi64"}, R"(
def main(x: Tensor, n: Tensor):
    y = torch.round(x)
    y = torch.where(y > 1.5, torch.full_like(y, float("nan")), y)
    a = torch.sort(y), torch.sort(y, 0, True), torch.sort(y, stable=True, dim=1, descending=True), torch.sort(n, 0)
    b = torch.argsort(n, 1, True), torch.msort(y), torch.sort(n > 1, 1), torch.sort(y.half(), 1), torch.sort(x[0, 0], 0)
    return a, b
)"},
      {"picked", {"3x40xf32", "6x11xi64", "2x700xf32"}, R"(
def main(x: Tensor, n: Tensor, z: Tensor):
    y = torch.round(x * 2)
    nan = torch.where(y > 4.5, torch.full_like(y, float("nan")), y)
    a = torch.topk(y, 5), torch.topk(nan, 3, 0, False), torch.topk(n, 11, 1, True, False), torch.topk(torch.round(z), 9)
    b = torch.kthvalue(y, 7), torch.kthvalue(n, 2, 0, True), torch.median(nan), torch.median(y, 1), torch.nanmedian(nan, 1, True)
    return a, b, torch.nanmedian(nan), torch.mode(n, 1), torch.mode(nan, 0), torch.mode(nan, 1)
)"},
      {"searched", {"4x9xf32", "4x6xf32", "11xi64"}, R"(
def main(x: Tensor, v: Tensor, n: Tensor):
    s, order = torch.sort(x, 1)
    a = torch.searchsorted(s, v), torch.searchsorted(s, v, right=True, out_int32=True), torch.searchsorted(x, v, sorter=order)
    return a, torch.bucketize(v, s[0]), torch.bucketize(n, torch.tensor([0, 1, 1, 3])), torch.bucketize(2, torch.tensor([0, 1, 1, 3]))
)"},
      {"indexed", {"3x4x5xf32", "6xi64", "2x6xi64"}, R"(
def main(x: Tensor, i: Tensor, j: Tensor):
    k = torch.clamp(i, 0, 2)
    a = x[k], x[:, i], x[k, i], x[k, :, j], x[:, :, -j], x[k.to(torch.int32), j]
    return a, x[:, torch.tensor([True, False, True, True])], x[torch.tensor([0, -1])], x.half()[k], (x > 0)[k, j], torch.take(x, j - 7)
)"},
      {"indexed_outside", {"3x4xf32", "6xi64"}, R"(
def main(x: Tensor, i: Tensor):
    return x[i]
)"},
      {"put", {"4x5xf32", "6xi64", "6xf32", "6xi64"}, R"(
def main(x: Tensor, i: Tensor, v: Tensor, j: Tensor):
    a = x.clone()
    a[i, j] = v
    b = x.clone()
    b[:, i] = v
    c = x.t().contiguous().t()
    c[i] = 7.0
    d = torch.index_put(x, [i, j], v, True)
    e = x.clone()
    e[e > 1] = -1.0
    f = x.double()
    f[2:][:, torch.tensor([1, 3])] *= 2
    g = x > 0
    g[i, j] = True
    h = torch.put(x, i - 9, v), torch.put(x, i, v, True)
    return a, b, c, d, e, f, g, h
)"},
      {"scattered", {"4x5xf32", "3x5xi64", "4x6xf32", "4x5xi64"}, R"(
def main(x: Tensor, i: Tensor, v: Tensor, n: Tensor):
    w = v[:, :5]
    a = torch.scatter(x, 0, i, w), torch.scatter(x, 1, i, 2.5), torch.scatter_add(x, 0, i, w), torch.scatter_add(n, 0, i, n)
    b = torch.scatter(x, 0, i, w, reduce="multiply"), torch.scatter(x, 0, i, 3.0, reduce="add")
    c = [torch.scatter_reduce(x, 0, i, w, how, include_self=keep) for how in ["sum", "prod", "mean", "amax", "amin"] for keep in [True, False]]
    d = torch.scatter_reduce(n, 0, i, n, "mean"), torch.scatter_reduce(n, 0, i, n - 9, "amax", include_self=False)
    return a, b, c, d, torch.gather(x, 0, i), torch.take_along_dim(x, i[:, :1] - 4, 0), torch.take_along_dim(x, i[0])
)"},
      {"by_vector", {"4x5xf32", "3xi64", "3x5xf32"}, R"(
def main(x: Tensor, i: Tensor, v: Tensor):
    a = torch.index_add(x, 0, i, v), torch.index_add(x, 0, i, v, alpha=-0.3), torch.index_copy(x, 0, i, v), torch.index_fill(x, 1, i - 4, 9.0)
    b = torch.index_reduce(x, 0, i, v, "mean"), torch.index_reduce(x, 0, i, v, "amin", include_self=False), torch.index_select(x, 1, i)
    y = x.clone()
    y.index_add_(0, i, v).index_fill_(0, i[:1], torch.tensor(2.0))
    return a, b, y, torch.nn.functional.one_hot(i, 5)
)"},
      {"masked", {"4x5xf32", "5xbool", "30xf32"}, R"(
def main(x: Tensor, m: Tensor, v: Tensor):
    y = x.t().contiguous().t()
    y.masked_scatter_(m, v)
    return y, x.masked_scatter(m, v), x.masked_scatter(x > 0, v)
)"},
      {"counted", {"3x40xf32", "50xf64"}, R"(
def main(x: Tensor, y: Tensor):
    nan = torch.where(x > 2, torch.full_like(x, float("nan")), x)
    a = torch.histc(x, 7), torch.histc(nan, 5, -1, 2.5), torch.histc(y, 9, -2, 2), torch.histc(x * 0 + 3, 4)
    return a, torch.histogram(y, torch.tensor([-3.0, 0.0, 0.5, 3.0], dtype=torch.float64))[0]
)"},
      {"bags", {"4x35xf32", "7xi64", "3xi64", "7xf32"}, R"(
def main(w: Tensor, i: Tensor, o: Tensor, v: Tensor):
    starts = torch.cumsum(torch.cat([torch.zeros(1, dtype=torch.int64), o]), 0)[:3]
    f = torch.embedding_bag
    a = f(w, i, starts, False, 0), f(w, i, starts, False, 1), f(w, i, starts, False, 2), f(w, i, starts, False, 0, False, v)
    b = f(w, i, starts, False, 2, False, None, True), f(w, i, starts, False, 1, False, None, False, 1), f(w.double(), i.int(), starts.int(), False, 0)
    return a, b, torch.nn.functional.embedding_bag(i[:6].view(2, 3), w, mode="mean")
)"},
      {"padded", {"2x3x5x6xf32", "2x3x7xf32", "2x2x3x4x3xf64"}, R"(
def main(x: Tensor, y: Tensor, z: Tensor):
    f = torch.nn.functional.pad
    a = f(x, [1, 2, 2, 1]), f(x, [1, 2], value=2.5), f(x, [-1, 3, 0, -2]), f(x.to(torch.int32), [1, 1], value=3.0), f(x > 0, [0, 1])
    b = [f(x, [1, 3, 2, 4], mode=how) for how in ["reflect", "replicate", "circular"]]
    c = [f(y, [-2, 3], mode=how) for how in ["reflect", "replicate", "circular"]]
    d = [f(z, [1, 1, 0, 2, 1, 0], mode=how) for how in ["reflect", "replicate", "circular"]]
    e = f(x.contiguous(memory_format=torch.channels_last), [1, 1, 1, 1], mode="replicate"), torch.reflection_pad1d(y, [6, 6]), f(y, [9, -8], mode="replicate")
    known = f(torch.arange(6.0).view(1, 6), [2, 1]) + y[0, 0, 0]
    return a, b, c, d, e, known
)"},
      {"narrow_products", {"4x5xf16", "5x40xf16", "3x33x40xbf16", "3x40x35xbf16", "35xbf16"}, R"(
def main(a: Tensor, b: Tensor, c: Tensor, d: Tensor, v: Tensor):
    f = torch.nn.functional.linear
    x = a @ b, torch.addmm(b[:4] * 2, a, b), torch.mv(b, b[0]), torch.dot(b[0], b[1]), torch.baddbmm(c[:, :, :35], c, d), f(a, b.t()), f(c, d[0].t(), v)
    return x, c @ d, torch.relu(f(c[0], d[0].t(), v)), torch.cumsum(b.float(), 1)
)"},
      {"other_convolutions", {"2x4x7x6xf32", "6x2x3x3xf32", "4x3x3x3xf32", "2x4x9xf32"}, R"(
def main(x: Tensor, w: Tensor, t: Tensor, y: Tensor):
    f = torch.nn.functional
    i = (x * 3).to(torch.int64), (w * 2).to(torch.int64), (t * 2).to(torch.int64)
    a = f.conv2d(i[0], i[1], None, stride=2, padding=1, groups=2), f.conv_transpose2d(i[0], i[2], stride=2, padding=1, output_padding=1), f.conv2d(i[0], i[1], torch.arange(6), groups=2, dilation=2, padding=2)
    b = f.conv2d(x.half(), w.half(), w.half()[:, 0, 0, 0], groups=2), f.conv_transpose1d(y.bfloat16(), t[:, :, 0].bfloat16()), f.conv1d(y.double(), w[:, :, 0].double(), groups=2, padding=1)
    c = f.conv2d(x, w, None, padding=1, groups=2), f.conv2d(x, w * 2, w[:, 0, 0, 0], groups=2), f.conv_transpose2d(x, t - 1, stride=2), f.conv_transpose2d(x, t, stride=1, padding=2, output_padding=0)
    return a, b[:2], c, f.conv3d(i[0].unsqueeze(2), i[2].unsqueeze(2).transpose(0, 1), padding=[1, 0, 1])
)"},
      {"regions", {"2x8x9x7xf32", "5x4xf32"}, R"(
def main(x: Tensor, r: Tensor):
    low = torch.abs(r[:, :2]) * 2
    rois = torch.cat([torch.tensor([[0.0], [1.0], [0.0], [1.0], [1.0]]), low, low + torch.abs(r[:, 2:]) * 3], 1)
    v = torch.ops.torchvision
    a = v.roi_align(x, rois, 0.7, 3, 2, 2, False), v.roi_align(x, rois, 1.0, 2, 2, -1, True), v.roi_align(x.double(), rois.double(), 0.5, 2, 3, 0, False)
    return a, v.roi_pool(x, rois, 0.8, 3, 2), v.ps_roi_align(x, rois, 1.0, 2, 2, 2)
)"},
      {"deformed", {"2x4x6x5xf32", "6x2x3x3xf32", "2x36x4x3xf32", "2x18x4x3xf32", "6xf32"}, R"(
def main(x: Tensor, w: Tensor, o: Tensor, m: Tensor, b: Tensor):
    f = torch.ops.torchvision.deform_conv2d
    return f(x, w, o, m, b, 1, 1, 0, 0, 1, 1, 2, 2, True), f(x, w, o, m, b, 1, 1, 0, 0, 1, 1, 2, 2, False)
)"},
      {"distances", {"2x6x5xf32", "2x7x5xf32", "30x3xf32"}, R"(
def main(x: Tensor, y: Tensor, z: Tensor):
    a = [torch.cdist(x, y, p) for p in [0.0, 1.0, 2.0, 2.5, float("inf")]]
    return a, torch.cdist(z, z), torch.cdist(x.half(), y.half()), torch.nn.functional.pdist(z[:9]), torch.pdist(z[:5].double(), 3.0)
)"},
      {"quantiles", {"4x9xf32", "3xf32"}, R"(
def main(x: Tensor, q: Tensor):
    f = torch.abs(q) / 4
    nan = torch.where(x > 2, torch.full_like(x, float("nan")), x)
    a = [torch.quantile(x, f, 1, interpolation=how) for how in ["linear", "lower", "higher", "midpoint", "nearest"]]
    b = torch.quantile(x, 0.3), torch.quantile(nan, f, 0, keepdim=True), torch.nanquantile(nan, 0.75, 1), torch.nanquantile(nan, f, keepdim=True)
    return a, b, torch.quantile(x.double(), 0.5, dim=0)
)"},
      {"membership", {"4x5xi64", "3xi32", "9xf32"}, R"(
def main(x: Tensor, y: Tensor, z: Tensor):
    a = torch.isin(x, torch.tensor([1, 3])), torch.isin(x, y), torch.isin(x, y, invert=True), torch.isin(z.half(), z[:3].half()), torch.isin(x, 2)
    b = torch.isclose(z, z + 1e-9), torch.isclose(x, x + 1, rtol=0.5), torch.isclose(z / 0, z / 0, equal_nan=True)
    return a, b, torch.aminmax(z), torch.aminmax(x, dim=1, keepdim=True), torch.frexp(z), torch.trace(x), torch.trace(z.view(3, 3)), torch.vander(z), torch.vander(x[0], 3, True)
)"},
      {"assembled", {"3xf32", "4xf32", "2x2xf32"}, R"(
def main(x: Tensor, y: Tensor, m: Tensor):
    a = torch.cartesian_prod([x, y]), torch.combinations(y, 2), torch.combinations(x, 2, True), torch.block_diag([m, x, y.view(2, 2)])
    f = torch.nn.functional
    g = f.affine_grid(torch.cat([m, x[:2].unsqueeze(1)], 1).unsqueeze(0), [1, 1, 4, 5]), f.affine_grid(torch.cat([m, x[:2].unsqueeze(1)], 1).double().unsqueeze(0), [1, 1, 3, 2], True)
    return a, g, f.prelu(m, x[:1]), f.prelu(m.unsqueeze(0), y[:2]), torch.logit(torch.sigmoid(x)), torch.logit(x, 0.1)
)"},
      {"unpooled", {"2x3x8x6xf32"}, R"(
def main(x: Tensor):
    v, i = torch.nn.functional.max_pool2d(x, 2, return_indices=True)
    w, j = torch.nn.functional.max_pool2d(x[0], 2, return_indices=True)
    return torch.nn.functional.max_unpool2d(v, i, 2), torch.nn.functional.max_unpool2d(w, j, 2)
)"},
      {"repeated", {"3x4xf32", "3xi64"}, R"(
def main(x: Tensor, n: Tensor):
    a = x.repeat_interleave(2, 0), torch.repeat_interleave(x, 3), x.repeat_interleave(torch.tensor([2, 0, 1]), 0)
    return a, torch.repeat_interleave(x, torch.tensor([1, 2, 0, 3]), dim=1, output_size=6)
)"},
      {"complex_arithmetic", {"3x4xc64", "4xc64", "3x4xf32", "2x3xc128"}, R"(
def main(x: Tensor, y: Tensor, r: Tensor, d: Tensor):
    a = x + y, x - y * 2, x * y, x / y, x * r, r - x, x * (2 - 3j), torch.reciprocal(y), -x
    b = torch.add(x, y, alpha=2), x ** 2, torch.addcmul(x, y, x, value=0.5), torch.lerp(x, x * 2, 0.25), torch.rsub(x, y)
    c = x == y, x != x, torch.isnan(x / 0), torch.where(r > 0, x, y), x.masked_fill(r > 0, 1j), torch.isfinite(x)
    return a, b, c, d * d.conj(), x.to(torch.complex128) * x, d.to(torch.complex64), (x * (r > 0)).to(torch.bool), (d - d).to(torch.bool)
)"},
      {"complex_parts", {"3x4xc64", "3x4x2xf32", "3x4xf32", "5xc128"}, R"(
def main(x: Tensor, p: Tensor, r: Tensor, d: Tensor):
    z = torch.view_as_complex(p)
    y = x.clone()
    y.real.mul_(2)
    y.imag.copy_(r)
    w = x.t().clone()
    w[1] = 3.0
    w[:, 0] += z[0, 0]
    a = torch.view_as_real(x * z), x.real, x.imag, x.conj(), torch.conj(z) * x, y, w
    b = torch.complex(r, r * 2), torch.polar(torch.abs(r), r), torch.view_as_real(d), d.real + d.imag
    return a, b, x.t(), torch.cat([x, z]), torch.stack([x, z], 1), x[:, 1:3], x.flip([0]), torch.roll(x, 1, 0), x.permute([1, 0]).contiguous(), r.to(torch.complex64)
)"},
      {"complex_functions", {"3x4xc64", "5xc128", "3x4xf32"}, R"(
def main(x: Tensor, d: Tensor, r: Tensor):
    out: List[Tensor] = []
    for z in [x, d, x.t()]:
        out += [torch.abs(z), torch.angle(z), torch.exp(z), torch.log(z), torch.sqrt(z), torch.sin(z), torch.cos(z), torch.tan(z)]
        out += [torch.sinh(z), torch.cosh(z), torch.tanh(z), torch.asin(z), torch.acos(z), torch.atan(z), torch.asinh(z), torch.acosh(z), torch.atanh(z)]
        out += [torch.log10(z), torch.log2(z), torch.rsqrt(z), torch.sigmoid(z), torch.sgn(z), z ** (1.5 + 1j), z ** z, (z - z).abs(), torch.sgn(z - z)]
    return out, torch.abs(x * float("inf")), torch.pow(x, r)
)"},
      {"transforms", {"3x8xf32", "2x12xf64", "3x7xc64", "2x60xc128", "9x67xf32", "5x100xf32"}, R"(
def main(x: Tensor, d: Tensor, z: Tensor, w: Tensor, p: Tensor, h: Tensor):
    f = torch.fft
    a = f.fft(x), f.ifft(x), f.rfft(x), f.irfft(f.rfft(x)), f.fft(z), f.ifft(z), f.fft(w), f.ifft(w, norm="ortho"), f.rfft(d, norm="forward")
    b = f.fft(x, 5), f.rfft(x, 11), f.fft(x, 16, 0), f.irfft(z, 9), f.irfft(z, 12), f.irfft(z, 20), f.hfft(z), f.ihfft(x), f.hfft(z, 5), f.ihfft(d, norm="ortho")
    c = f.rfft(p), f.fft(p), f.ifft(f.fft(p)), f.irfft(f.rfft(p), 67), f.fft(p.t()), f.rfft(h), f.irfft(f.rfft(h, dim=0), 5, 0), f.fft(h[:, 0]), f.fft(x[:, 1:2])
    return a, b, c
)"},
      {"transforms_of_planes", {"2x6x8xf32", "2x6x5xc64", "3x4x5x6xf64"}, R"(
def main(x: Tensor, z: Tensor, v: Tensor):
    f = torch.fft
    a = f.fft2(x), f.ifft2(z), f.rfft2(x), f.irfft2(f.rfft2(x)), f.irfft2(z, [6, 8]), f.fft2(x, dim=[0, 1]), f.rfft2(x, norm="ortho")
    b = f.fftn(x), f.ifftn(z), f.rfftn(v), f.irfftn(f.rfftn(v)), f.fftn(v, dim=[1, 3]), f.rfftn(v, dim=[3, 0]), f.fftn(x, [4, 9], norm="forward")
    return a, b, f.fftshift(f.fft2(x)), f.ifftshift(z), f.fftfreq(5) * x[0, 0, :5], f.rfftfreq(6), f.fftfreq(5, out=x[0, 0, :5].clone())
)"},
      {"long_transforms", {"2x16384xf32", "1x16700xc64", "9000xf64"}, R"(
def main(x: Tensor, z: Tensor, d: Tensor):
    f = torch.fft
    return f.rfft(x), f.fft(x), f.fft(z), f.irfft(f.rfft(d), 9000), f.fft(d[:8209])
)"},
      {"short_time", {"2x200xf32", "150xf64", "32xf32"}, R"(
def main(x: Tensor, y: Tensor, v: Tensor):
    w = torch.hann_window(32)
    s = torch.stft(x, 32, 8, window=w, return_complex=True)
    t = torch.stft(y, 25, return_complex=True, onesided=False, center=False)
    a = s, torch.abs(s) ** 2, torch.angle(s), torch.view_as_real(s), t, torch.stft(x, 32, 16, 20, normalized=True, return_complex=True)
    b = torch.istft(s, 32, 8, window=w), torch.istft(s[0], 32, 8, window=w, length=170), torch.istft(torch.stft(x, 32, window=torch.abs(v) + 0.1, return_complex=True), 32, window=torch.abs(v) + 0.1)
    c = torch.istft(torch.stft(y, 24, 6, return_complex=True), 24, 6), torch.istft(torch.polar(torch.abs(s), torch.angle(s)), 32, 8, 32, w, normalized=True)
    whole = torch.stft(x, 32, 8, return_complex=True, onesided=False)
    d = torch.istft(whole, 32, 8, return_complex=True, onesided=False), torch.istft(whole[0], 32, 8, 20, torch.complex(v[:20], torch.abs(v[:20]) + 0.1), onesided=False, return_complex=True, length=190)
    q = torch.empty([7])
    return a, b, c, d, torch.stft(x, 32, 8, window=v, return_complex=False), torch.fft.rfftfreq(9, out=q) + x[0, 0]
)"},
      {"complex_sums", {"3x40xc64", "4x6x5xc128", "2x3x4xc64", "2x4x5xc64"}, R"(
def main(x: Tensor, d: Tensor, a: Tensor, b: Tensor):
    s = x.sum(), x.sum(1), x.sum(0), x.mean(), x.mean(1, True), d.sum(1), d.sum([0, 2]), d.mean(2), d.permute([2, 0, 1]).sum(0), x.t().mean(0), x[0, 0].sum()
    c = torch.cumsum(x, 1), torch.cumsum(d, 0), torch.sum(x.real, 0, dtype=torch.complex64), torch.cumsum(d[0], -1)
    p = torch.bmm(a, b), a[0] @ b[0], torch.matmul(a, b[0]), torch.einsum("bix,bxo->bio", a, b), torch.nn.functional.linear(a, b[0].t()), d @ d.transpose(1, 2)
    e = torch.isnan(x[:, :0].mean(1)), torch.isnan(d[:0].mean()), torch.logsumexp(x.real[:, :0], 1)
    return s, c, p, e
)"},
      {"complex_reads", {"4x5xc64", "3xi64", "3x5xc64", "3xc128"}, R"(
def main(x: Tensor, i: Tensor, v: Tensor, d: Tensor):
    k = i.unsqueeze(1).expand(3, 5)
    y = x.clone()
    y[i] = v
    y[:, 1:3] = v[0, 0]
    a = x[i], x[:, i], x[i, i], torch.index_select(x, 1, i), torch.gather(x, 0, k), torch.take(x, i), d[i - 3], torch.index_put(x, [i], v)
    return a, y, torch.scatter(x, 0, k, v), torch.index_copy(x, 0, i, v), torch.where(x.real > 0, x, x.conj()), x.repeat([2, 1]), x.unfold(1, 2, 1), torch.nn.functional.pad(x, [1, 1]), torch.index_put(d, [torch.clamp(i, 0, 2)], d * 2), torch.masked_scatter(d, d.real > 0, d * 3)
)"},
      {"spectral_layer", {"2x3x8x8xf32", "3x4x3x3xc64", "1x6x4xf32", "6x2xc64"}, R"(
def main(x: Tensor, w: Tensor, q: Tensor, f: Tensor):
    h = torch.fft.rfft2(x)
    out = torch.zeros([2, 4, 8, 5], dtype=torch.complex64)
    out[:, :, :3, :3] = torch.einsum("bixy,ioxy->boxy", h[:, :, :3, :3], w)
    out[:, :, -3:, :3] = torch.einsum("bixy,ioxy->boxy", h[:, :, -3:, :3], w)
    r = torch.view_as_complex(q.reshape([1, 6, 2, 2])) * f
    return torch.fft.irfft2(out, s=[8, 8]), torch.view_as_real(r).flatten(2)
)"},
      {"narrow_sums", {"4x5xf16", "3xi64", "3x5xf16", "6x3xbf16"}, R"(
def main(x: Tensor, i: Tensor, v: Tensor, b: Tensor):
    a = torch.cumsum(x, 1), torch.cumsum(b, 0), torch.cumprod(x, 0), torch.logcumsumexp(x, 1), torch.cumsum(x, 0, dtype=torch.float32)
    c = torch.index_add(x, 0, i, v), torch.index_add(x, 0, i, v, alpha=0.3), torch.index_add(b, 0, i, b[:3])
    return a, c, torch.scatter_add(x, 0, i.unsqueeze(1).expand(3, 5), v), torch.index_put(x, [i], v, True)
)"},
      {"factors", {"2x4x4xf32", "2x4x3xf32"}, R"(
def main(x: Tensor, b: Tensor):
    l = torch.linalg
    s = x @ x.transpose(-1, -2) + 0.1 * torch.eye(4)
    lu, p = l.lu_factor(x)
    a = l.inv(x), torch.inverse(x[0].double()), l.solve(x, b), l.solve(x, b[:, :, 0]), l.solve(x, b.transpose(1, 2), left=False), torch.det(x), l.slogdet(x), torch.logdet(s)
    c = lu, p, l.lu(x), torch.lu_unpack(lu, p), l.lu_solve(lu, p, b), torch.lu_solve(b, lu, p), l.lu_factor_ex(x[:, :3]), l.inv_ex(x)
    k = l.cholesky(s)
    d = k, torch.cholesky_solve(b, k), torch.cholesky_inverse(k[0]), l.cholesky_ex(x), l.cholesky(s, upper=True)
    return a, c, d, torch.triangular_solve(b, x), l.solve_triangular(x, b, upper=False), l.solve_triangular(x.double(), b.transpose(1, 2).double(), upper=True, left=False)
)"},
      {"spectra", {"2x4x4xf32", "5x3xf64"}, R"(
def main(x: Tensor, y: Tensor):
    l = torch.linalg
    s = x + x.transpose(-1, -2)
    a = l.svd(x), l.svd(y, full_matrices=False), l.svd(y.t()), torch.svd(x), l.svdvals(y), l.eigh(s), l.eigvalsh(s[0], UPLO="U")
    b = l.qr(x), l.qr(y), l.qr(y, mode="complete"), l.qr(y.t()), l.householder_product(torch.geqrf(y)[0], torch.geqrf(y)[1])
    e = l.svd(x[:, :, :0]), l.svd(y[:0], full_matrices=False), l.svd(y[:0]), torch.svd(x[:, :0]), l.svdvals(y[:0])
    return a, b, l.matrix_rank(x), l.matrix_norm(x, 2), e
)"},
      {"statistics", {"2x6x4x5xf32", "2x6x3xf32"}, R"(
def main(x: Tensor, y: Tensor):
    w = torch.arange(6.0) - 2.5
    m = torch.zeros(6)
    v = torch.ones(6)
    a = torch.native_layer_norm(x, [4, 5], None, None, 1e-5), torch.native_layer_norm(x, [5], w[:5], w[1:], 1e-5), torch.native_layer_norm(y.half(), [3], None, w[:3].half(), 1e-3)
    b = torch.native_group_norm(x, w, None, 2, 6, 20, 3, 1e-5), torch.native_group_norm(y, None, w, 2, 6, 3, 2, 1e-5)
    c = torch.native_batch_norm(x, w, w, m, v, True, 0.1, 1e-5), torch.native_batch_norm(y, None, None, None, None, True, 0.1, 1e-5), torch.batch_norm_update_stats(x, m, v, 0.2), torch.native_batch_norm(x, w, None, m, v, False, 0.1, 1e-5)
    n = m.clone()
    d = torch.instance_norm(x, w, w, n, v, True, 0.3, 1e-5, False)
    e: List[Tensor] = []
    for one in [torch.native_group_norm(x[:, :, :0], w, None, 2, 6, 0, 3, 1e-5), torch.native_group_norm(x[:0], None, w, 0, 6, 20, 3, 1e-5), torch.native_layer_norm(y[:, :, :0], [0], None, None, 1e-5)]:
        e += [one[0], one[1], torch.isnan(one[2])]
    return a, b, c, d, e, m, v, n, torch.equal(x, x), torch.count_nonzero(x > 0), torch.count_nonzero(y, 1)
)"},
      {"random", {"4x9xf32"}, R"(
def main(x: Tensor):
    torch.manual_seed(7)
    f = torch.nn.functional
    a = torch.rand(3, 4), torch.randn(5), torch.randn(2, 19), torch.randn(37, dtype=torch.float64), torch.randn(32), torch.rand(3, dtype=torch.float64)
    b = torch.randint(-3, 9, [7]), torch.randperm(9), torch.randperm(5, generator=None), torch.rand_like(x), torch.randn_like(x), torch.normal(0.5, 2.0, [4]), torch.randint(0, 5000000000, [3])
    torch.rand(5)
    w = torch.abs(x) + 0.1
    c = f.dropout(x, 0.4, True), torch.bernoulli(torch.sigmoid(x)), torch.multinomial(w, 2), torch.multinomial(w[0], 5, True), torch.multinomial(w, 1, True), f.gumbel_softmax(x), torch.bernoulli(x, 0.3)
    torch.manual_seed(-1)
    y = torch.zeros(6)
    d = y.clone().uniform_(-1.0, 2.0), y.clone().exponential_(0.5), y.clone().cauchy_(), y.clone().geometric_(0.2), y.clone().log_normal_(), y.clone().normal_(1.0, 2.0), torch.zeros(3, dtype=torch.int32).random_(), y.clone().random_(7)
    z = torch.zeros(3, 4, dtype=torch.float64)
    z[:, 1].uniform_()
    k = torch.zeros(5, dtype=torch.int64)
    e = k.clone().random_(3, None), k.clone().random_(-9223372036854775807, 9223372036854775807), k.clone().random_(-9223372036854775808, None), k.clone().random_(-9223372036854775808, -1), y.clone().random_(5, None), z.clone().random_(5, None), k.to(torch.int8).random_(-4, None), k.to(torch.uint8).random_(3, 256), k.to(torch.uint8).geometric_(0.001), k.to(torch.int8).geometric_(0.001), k.clone().geometric_(1e-12), k.to(torch.int32).geometric_(1e-12)
    return a, b, c, d, e, z, f.dropout2d(x.view(1, 4, 3, 3), 0.5, True)
)"},
      {"random_paths", {"4xf32"}, R"(
def main(x: Tensor):
    torch.manual_seed(3)
    y = torch.rand(2)
    if bool(x.sum() > 0):
        y = y + torch.rand(2)
    else:
        torch.randn(3)
    n = int(torch.abs(x[0]))
    for i in range(n):
        y = y + torch.rand(2)
    return y, torch.rand(1)
)"},
      {"fake_quantized", {"3x40xf32", "3xf32", "3xi32"}, R"(
def main(x: Tensor, s: Tensor, z: Tensor):
    scale = torch.abs(s) + 0.01
    point = torch.clamp(z, -8, 7)
    wild = torch.cat([x * 1e30, torch.full([3, 2], float("nan")), torch.full([3, 1], float("inf"))], 1)
    f = torch.fake_quantize_per_tensor_affine
    a = f(x, 0.1, 3, 0, 15), f(wild, 0.25, 0, -8, 7), f(x.double(), 0.25, -2, -8, 7), f(x.half(), 0.1, 3, 0, 15), f(x, scale[0], point[1], -8, 7)
    g = torch.fake_quantize_per_channel_affine
    b = g(x, scale, point, 0, -8, 7), g(wild, scale, s, 0, -8, 7), g(wild.double(), scale, s, 0, -8, 7), g(x.double(), scale, s.half(), 0, -8, 7)
    return a, b, torch._fake_quantize_learnable_per_channel_affine(wild, scale, s * 9, 0, -8, 7, 1.0)
)"},
      {"fake_quantized_outside", {"2x3xf32", "2xi32"}, R"(
def main(x: Tensor, z: Tensor):
    return torch.fake_quantize_per_channel_affine(x, torch.tensor([0.1, 0.5]), z, 0, -30, 60)
)"},
      {"lists", {"3x4xf32", "2x4xf32"}, R"(
def main(x: Tensor, y: Tensor):
    a = [x, y]
    b = torch._foreach_add(a, [x + 1, y], alpha=2)
    torch._foreach_mul_(b, 0.5)
    torch._foreach_neg_(b)
    c = torch._foreach_addcmul(a, b, b, 0.5), torch._foreach_sqrt(torch._foreach_abs(a)), torch._foreach_maximum(a, b)
    return b, c, torch._C._nn.pad_sequence(a, True, 7.0), torch._C._nn.pad_sequence(a)
)"},
      {"lstm", {"5x2x3xf32", "1x2x4xf32", "1x2x4xf32"}, R"(
def main(x: Tensor, h: Tensor, c: Tensor):
    w = [torch.sin(torch.arange(48.0)).view(16, 3), torch.cos(torch.arange(64.0)).view(16, 4), torch.arange(16.0) / 16, torch.arange(16.0) / 9]
    g = [torch.sin(torch.arange(36.0)).view(12, 3), torch.cos(torch.arange(48.0)).view(12, 4), torch.arange(12.0) / 16, torch.arange(12.0) / 9]
    return torch.lstm(x, [h, c], w, True, 1, 0.0, False, False, False), torch.gru(x, h, g, True, 1, 0.0, False, False, False)
)"},
  };
  return all;
}

class ElementsTest : public testing::TestWithParam<Case> {};

TEST_P(ElementsTest, GivesTheBitsOfTheEngine) {
  static auto& library = *new CaseLibrary("elements", cases());
  library.compare(GetParam(), 9, "ZeroDivision");
}
INSTANTIATE_TEST_SUITE_P(Aot, ElementsTest, testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

// The same text under the other compiler.
TEST(AotElementsTest, CompilesUnderClang) {
  expectCompilesUnderClang("elements_clang", cases());
}

// A state goes on with its random numbers from call to call, as the engine does.
TEST(AotElementsTest, RandomNumbersGoOn) {
  const Program program = compile("def main(x: Tensor):\n    return x + torch.randn(3)\n");
  const std::vector<Tensor> inputs = {tensorOf("3xf32", 1)};
  Workshop workshop("seeded");
  workshop.add("seeded", program.function("main"), valuesOf(inputs));
  ASSERT_EQ(workshop.compile(), "");
  Running running(workshop, "seeded");
  auto& [model, state] = running;
  auto* const seed = workshop.find<void(wick_aot_state*, uint64_t)>("seeded_seed");
  const auto compare = [&] {
    const std::vector<Tensor> outputs = outputsOf(*model.about());
    EXPECT_EQ(call(model, state, inputs, outputs), "");
    expectSame(program.call("main", valuesOf(inputs)).toTensor(), outputs[0]);
  };
  for (const uint64_t number : {uint64_t{67280421310721}, uint64_t{5}, uint64_t{5}}) {
    SCOPED_TRACE(number);
    defaultGenerator().seed(number);
    // A new state begins as a new process does.
    if (number == 5) seed(&state, number);
    for (int call = 0; call < 3; ++call) compare();
  }
}

// Errors that elements decide are errors of the call.
// Elements are moved by their width and computed with by their type; a compiler that takes these for different memory puts
// the copy behind the writes.
TEST(AotElementsTest, WritesStayBehindTheCopyThatTheyChange) {
  const Program program = compile(R"(
def main(x: Tensor, i: Tensor, v: Tensor) -> Tensor:
    y = x.clone()
    y.scatter_(0, i, v)
    return y
)");
  const Tensor x = tensorOf("4x3xf32", 1), i = tensorOf("2x3xi64", 2);
  const Tensor v = tensorOf("2x3xf32", 3);
  Workshop workshop("behind_a_copy");
  workshop.add("written", program.function("main"), {x, i, v});
  ASSERT_EQ(workshop.compile("g++", "-O3 -fopenmp"), "");
  Running running(workshop, "written");
  auto& [model, state] = running;
  const std::vector<Tensor> outputs = outputsFor(model, state, {x, i, v});
  ASSERT_EQ(call(model, state, {x, i, v}, outputs), "");
  expectSame(program.call("main", {x, i, v}).toTensor(), outputs.at(0));
}

TEST(AotElementsTest, ElementsRaise) {
  const auto said = [](const std::string& name, const std::string& body,
                       const std::vector<Tensor>& good, const std::vector<Tensor>& bad) {
    const Program program = compile("def main(x: Tensor, i: Tensor):\n    return " + body + "\n");
    Workshop workshop("raises_" + name);
    workshop.add(name, program.function("main"), valuesOf(good));
    EXPECT_EQ(workshop.compile(), "");
    Running running(workshop, name);
    auto& [model, state] = running;
    const std::vector<Tensor> outputs = outputsOf(*model.about());
    EXPECT_EQ(call(model, state, good, outputs), "");
    expectSame(program.call("main", valuesOf(good)).toTensor(), outputs[0]);
    EXPECT_THROW(program.call("main", valuesOf(bad)), RuntimeError);
    const std::string text = call(model, state, bad, outputs);
    return text;
  };
  const auto whole = [](std::vector<int64_t> v) { return Tensor::from(v); };
  EXPECT_THAT(
      said("quotient", "x // i", {whole({7, -7}), whole({2, -1})}, {whole({7, -7}), whole({2, 0})}),
      HasSubstr("ZeroDivisionError"));
  EXPECT_THAT(
      said("remainder", "x % i", {whole({7, -7}), whole({2, -1})}, {whole({7, -7}), whole({0, 1})}),
      HasSubstr("ZeroDivisionError"));
  EXPECT_THAT(
      said("reads", "x[i]", {whole({7, 8}), whole({1, -2})}, {whole({7, 8}), whole({1, -3})}),
      HasSubstr("index: index out of range"));
  EXPECT_THAT(said("writes", "torch.scatter(x, 0, i, 5)", {whole({7, 8}), whole({1, 0})},
                   {whole({7, 8}), whole({1, -1})}),
              HasSubstr("scatter: index out of range"));
  EXPECT_THAT(said("classes", "torch.nn.functional.one_hot(i, 3) + x[0]",
                   {whole({7, 8}), whole({1, 2})}, {whole({7, 8}), whole({1, 3})}),
              HasSubstr("one_hot: Class values must be from 0 to 2"));
  EXPECT_THAT(said("bag",
                   "torch.embedding_bag(x.view(3, 1).to(torch.float32), i, torch.tensor([0, 1]), "
                   "False, 0)[0]",
                   {whole({7, 8, 9}), whole({1, 2})}, {whole({7, 8, 9}), whole({1, 3})}),
              HasSubstr("embedding_bag: an index or an offset is out of range"));
  EXPECT_THAT(said("inverse", "torch.inverse(x.view(2, 2).to(torch.float32)) + i[0]",
                   {whole({1, 2, 3, 4}), whole({1})}, {whole({1, 2, 2, 4}), whole({1})}),
              HasSubstr("singular"));
  EXPECT_THAT(said("cholesky", "torch.linalg.cholesky(x.view(2, 2).to(torch.float32)) + i[0]",
                   {whole({2, 1, 1, 2}), whole({1})}, {whole({1, 2, 2, 1}), whole({1})}),
              HasSubstr("positive-definite"));
  EXPECT_THAT(said("few", "torch.masked_scatter(i, i > 0, x)", {whole({7}), whole({1, 0})},
                   {whole({7}), whole({1, 3})}),
              HasSubstr("Number of elements of source < number of ones in mask"));
}

}  // namespace
}  // namespace wick::elements_test
