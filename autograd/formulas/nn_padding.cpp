// Padding, patches, resampling, and elements that change places.
#include "autograd/formula.h"

namespace wick::autograd {

namespace {

constexpr HelperText kNnPaddingHelpers[] = {
    {"pad_opposite", R"(
def pad_opposite(pad: List[int]) -> List[int]:
    return [-p for p in pad]
)"},
    // Where each padded element comes from is found by padding the numbers of the elements.
    {"pad_sources", R"(
def pad_sources(size: List[int], pad: List[int], mode: str) -> Tensor:
    shape = size[len(size) - len(pad) // 2:]
    places = torch.arange(count_of(shape, None), dtype=torch.float64).reshape([1, 1] + shape)
    return torch.pad(places, pad, mode).to(torch.long).reshape([-1])
)"},
    {"pad_gradient", R"(
def pad_gradient(grad: Tensor, size: List[int], pad: List[int], mode: str) -> Tensor:
    if mode == 'constant':
        return torch.constant_pad_nd(grad, pad_opposite(pad), 0)
    spatial = len(size) - len(pad) // 2
    rows = count_of(size[:spatial], None)
    columns = count_of(size[spatial:], None)
    places = pad_sources(size, pad, mode).to(grad.device)
    flat = grad.reshape([rows, places.numel()])
    return torch.zeros([rows, columns], dtype=grad.dtype, device=grad.device).index_add(1, places, flat).reshape(size)
)"},
    {"pad_mode_name", R"(
def pad_mode_name(mode: int) -> str:
    return ['reflect', 'replicate', 'circular', 'constant'][mode]
)"},
    // No scale, or one that is not positive, counts as the quotient of the sizes.
    {"scales_of", R"(
def scales_of(a: Optional[float], b: Optional[float], c: Optional[float], n: int) -> List[float]:
    out: List[float] = []
    if n >= 3:
        out.append(0.0 if c is None else c)
    if n >= 2:
        out.append(0.0 if b is None else b)
    out.append(0.0 if a is None else a)
    return out
)"},
    {"scales_given", R"(
def scales_given(factors: Optional[List[float]]) -> List[float]:
    if factors is None:
        return []
    return factors
)"},
    // The grid is a product of base coordinates, which the identity shows, and matrices.
    {"affine_grid_gradient", R"(
def affine_grid_gradient(grad: Tensor, dtype: int, size: List[int], align_corners: bool) -> Tensor:
    n = len(size) - 2
    one = [1] + size[1:]
    identity = torch.eye(n + 1, dtype=dtype, device=grad.device)[:n].unsqueeze(0)
    seen = torch.affine_grid_generator(identity, one, align_corners).reshape([-1, n])
    base = torch.cat([seen, torch.ones([seen.size(0), 1], dtype=dtype, device=grad.device)], 1)
    flat = grad.reshape([size[0], seen.size(0), n])
    return torch.matmul(flat.transpose(1, 2), base)
)"},
};

#define WICK_PAD(mode) "self: pad_gradient(grad, self_size, padding, '" mode "')"
#define WICK_UP(name, n, mode, align, scales)                                                   \
  {                                                                                             \
    "aten::" name, "self: torch.ops.wick.upsample_gradient(grad, self_size, '" mode "', " align \
                   ", scales_of(" scales ", " n "))"                                            \
  }
#define WICK_UP_VEC(name, mode, align)                                                       \
  {                                                                                          \
    "aten::" name ".vec", "input: torch.ops.wick.upsample_gradient(grad, input_size, '" mode \
                          "', " align ", scales_given(scale_factors))"                       \
  }
#define WICK_UP1(name, mode, align) \
  WICK_UP(name, "1", mode, align, "scales, None, None"), WICK_UP_VEC(name, mode, align)
#define WICK_UP2(name, mode, align) \
  WICK_UP(name, "2", mode, align, "scales_w, scales_h, None"), WICK_UP_VEC(name, mode, align)
#define WICK_UP3(name, mode, align) \
  WICK_UP(name, "3", mode, align, "scales_w, scales_h, scales_d"), WICK_UP_VEC(name, mode, align)

constexpr FormulaText kNnPaddingFormulas[] = {
    {"aten::constant_pad_nd", "self: torch.constant_pad_nd(grad, pad_opposite(pad), 0)"},
    {"aten::pad", "self: pad_gradient(grad, self_size, pad, mode)"},
    {"aten::_pad_enum", "self: pad_gradient(grad, self_size, pad, pad_mode_name(mode))"},
    {"aten::_pad_circular", "self: pad_gradient(grad, self_size, pad, 'circular')"},
    {"aten::reflection_pad1d, aten::reflection_pad2d, aten::reflection_pad3d", WICK_PAD("reflect")},
    {"aten::replication_pad1d, aten::replication_pad2d, aten::replication_pad3d",
     WICK_PAD("replicate")},

    {"aten::im2col",
     "self: torch.col2im(grad, self_size[len(self_size) - 2:], kernel_size, dilation, padding, "
     "stride)"},
    {"aten::col2im", "self: torch.im2col(grad, kernel_size, dilation, padding, stride)"},

    {"aten::pixel_shuffle", "self: torch.pixel_unshuffle(grad, upscale_factor)"},
    {"aten::pixel_unshuffle", "self: torch.pixel_shuffle(grad, downscale_factor)"},
    {"aten::channel_shuffle, aten::native_channel_shuffle",
     "self: torch.channel_shuffle(grad, self_size[1] // groups)"},

    WICK_UP1("upsample_nearest1d", "nearest", "False"),
    WICK_UP2("upsample_nearest2d", "nearest", "False"),
    WICK_UP3("upsample_nearest3d", "nearest", "False"),
    WICK_UP1("_upsample_nearest_exact1d", "nearest-exact", "False"),
    WICK_UP2("_upsample_nearest_exact2d", "nearest-exact", "False"),
    WICK_UP3("_upsample_nearest_exact3d", "nearest-exact", "False"),
    WICK_UP1("upsample_linear1d", "linear", "align_corners"),
    WICK_UP2("upsample_bilinear2d", "linear", "align_corners"),
    WICK_UP3("upsample_trilinear3d", "linear", "align_corners"),
    WICK_UP2("upsample_bicubic2d", "cubic", "align_corners"),
    WICK_UP2("_upsample_bilinear2d_aa", "linear-antialias", "align_corners"),
    WICK_UP2("_upsample_bicubic2d_aa", "cubic-antialias", "align_corners"),
    {"wick::upsample",
     "self: torch.ops.wick.upsample_gradient(grad, self_size, mode, align_corners, scales)"},
    {"wick::upsample_gradient",
     "grad_output: torch.ops.wick.upsample(grad, grad_output_size[2:], mode, align_corners, "
     "scales)"},

    {R"(aten::grid_sampler, aten::grid_sampler_2d, aten::grid_sampler_3d,
         aten::_grid_sampler_2d_cpu_fallback)",
     R"(
input: torch.ops.wick.grid_sampler_input_gradient(grad, input_size, grid, interpolation_mode, padding_mode, align_corners)
grid: torch.ops.wick.grid_sampler_grid_gradient(grad, input, grid, interpolation_mode, padding_mode, align_corners)
)"},
    {"aten::affine_grid_generator",
     "theta: affine_grid_gradient(grad, theta_dtype, size, align_corners)"},
};

const RegisterFormulas kNnPaddingRegistered(kNnPaddingFormulas, kNnPaddingHelpers);

}  // namespace

}  // namespace wick::autograd
