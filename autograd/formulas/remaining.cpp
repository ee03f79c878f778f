// Operators of no larger family: quantization in training, samples, lists of tensors; and those
// that have no derivative, with the reason.
#include "autograd/formula.h"

namespace wick::autograd {

namespace {

// PyTorch 1.13 says of these that the derivative is not implemented.
constexpr const char* kNotInPyTorch = "missing PyTorch has no derivative";
constexpr const char* kOtherDevices = "missing available on other devices only";
constexpr const char* kQuantized = "missing quantized tensors have no gradients";
constexpr const char* kNested = "missing PyTorch has no derivative for nested tensors";
constexpr const char* kSecond = "missing PyTorch has no second derivative";

constexpr const char* kLater = "missing no formula is written for this operator of later versions";

constexpr HelperText kRemainingHelpers[] = {
    {"gradient_even", R"(
def gradient_even(x: Tensor, dim: int, step: number, edge_order: int) -> Tensor:
    n = x.size(dim)
    inner = (x.narrow(dim, 2, n - 2) - x.narrow(dim, 0, n - 2)) / 2 / step
    a, b = x.narrow(dim, 0, 1), x.narrow(dim, 1, 1)
    y, z = x.narrow(dim, n - 2, 1), x.narrow(dim, n - 1, 1)
    if edge_order == 1:
        return torch.cat([(b - a) / step, inner, (z - y) / step], dim)
    c, w = x.narrow(dim, 2, 1), x.narrow(dim, n - 3, 1)
    return torch.cat([(b * 2 - a * 1.5 - c * 0.5) / step, inner, (z * 1.5 - y * 2 + w * 0.5) / step], dim)
)"},
    {"gradient_uneven", R"(
def gradient_uneven(x: Tensor, dim: int, places: Tensor, edge_order: int) -> Tensor:
    n = x.size(dim)
    size = [1] * x.dim()
    size[dim] = n - 1
    d = places.diff().reshape(size)
    p, q = d.narrow(dim, 0, n - 2), d.narrow(dim, 1, n - 2)
    left, middle, right = x.narrow(dim, 0, n - 2), x.narrow(dim, 1, n - 2), x.narrow(dim, 2, n - 2)
    inner = right * (p / (q * (p + q))) + middle * ((q - p) / (p * q)) - left * (q / (p * (p + q)))
    a, b = x.narrow(dim, 0, 1), x.narrow(dim, 1, 1)
    y, z = x.narrow(dim, n - 2, 1), x.narrow(dim, n - 1, 1)
    first, last = d.narrow(dim, 0, 1), d.narrow(dim, n - 2, 1)
    if edge_order == 1:
        return torch.cat([(b - a) / first, inner, (z - y) / last], dim)
    c, w = x.narrow(dim, 2, 1), x.narrow(dim, n - 3, 1)
    second, before = d.narrow(dim, 1, 1), d.narrow(dim, n - 3, 1)
    begin = b * ((first + second) / (first * second)) - a * ((first * 2 + second) / (first * (first + second))) - c * (first / (second * (first + second)))
    end = z * ((last * 2 + before) / (last * (before + last))) - y * ((before + last) / (before * last)) + w * (last / (before * (before + last)))
    return torch.cat([begin, inner, end], dim)
)"},
    {"gradient_dims", R"(
def gradient_dims(x: Tensor, dim: Optional[List[int]]) -> List[int]:
    if dim is None:
        return list(range(x.dim()))
    return [d + x.dim() if d < 0 else d for d in dim]
)"},
    {"gradient_one_step", R"(
def gradient_one_step(x: Tensor, step: number, dim: Optional[List[int]], edge_order: int) -> List[Tensor]:
    return [gradient_even(x, d, step, edge_order) for d in gradient_dims(x, dim)]
)"},
    {"gradient_maybe_step", R"(
def gradient_maybe_step(x: Tensor, step: Optional[number], dim: Optional[int], edge_order: int) -> List[Tensor]:
    dims: Optional[List[int]] = None if dim is None else [dim]
    return gradient_one_step(x, 1 if step is None else step, dims, edge_order)
)"},
    {"gradient_steps", R"(
def gradient_steps(x: Tensor, steps: List[number], dim: Optional[List[int]], edge_order: int) -> List[Tensor]:
    dims = gradient_dims(x, dim)
    return [gradient_even(x, dims[i], steps[i], edge_order) for i in range(len(dims))]
)"},
    {"gradient_places", R"(
def gradient_places(x: Tensor, places: List[Tensor], dim: Optional[List[int]], edge_order: int) -> List[Tensor]:
    dims = gradient_dims(x, dim)
    return [gradient_uneven(x, dims[i], places[i], edge_order) for i in range(len(dims))]
)"},
    {"rms_factor", R"(
def rms_factor(x: Tensor, normalized_shape: List[int], eps: Optional[float]) -> Tensor:
    small = 1.1920928955078125e-07
    if eps is not None:
        small = eps
    elif x.dtype == torch.float64 or x.dtype == torch.complex128:
        small = 2.220446049250313e-16
    dims = list(range(x.dim() - len(normalized_shape), x.dim()))
    return torch.rsqrt((x * x).mean(dims, True) + small)
)"},
    {"rms_norm_made", R"(
def rms_norm_made(input: Tensor, normalized_shape: List[int], weight: Optional[Tensor], eps: Optional[float]) -> Tuple[Tensor, Tensor]:
    x = input
    if x.dtype == torch.float16 or x.dtype == torch.bfloat16:
        x = x.to(torch.float32)
    factor = rms_factor(x, normalized_shape, eps)
    out = x * factor
    if weight is not None:
        out = out * weight
    return out.to(input.dtype), factor
)"},
    {"batch_norm_four", R"(
def batch_norm_four(input: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], running_mean: Optional[Tensor], running_var: Optional[Tensor], training: bool, momentum: float, eps: float) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    a, b, c = batch_norm_made(input, weight, bias, running_mean, running_var, training, momentum, eps)
    return a, b, c, torch.empty([0], dtype=torch.uint8)
)"},
    {"safe_softmax_made", R"(
def safe_softmax_made(self: Tensor, dim: int, dtype: Optional[int]) -> Tensor:
    out = torch.softmax(self, dim, dtype)
    return out.masked_fill((self == -inf).all(dim, True), 0.0)
)"},
    {"trilinear_made", R"(
def trilinear_made(i1: Tensor, i2: Tensor, i3: Tensor, expand1: List[int], expand2: List[int], expand3: List[int], sumdim: List[int]) -> Tensor:
    for d in expand1:
        i1 = i1.unsqueeze(d)
    for d in expand2:
        i2 = i2.unsqueeze(d)
    for d in expand3:
        i3 = i3.unsqueeze(d)
    product = i1 * i2 * i3
    return product.sum(sumdim) if len(sumdim) > 0 else product
)"},
    {"reshaped_as", R"(
def reshaped_as(self: Tensor, shape: Tensor) -> Tensor:
    return self.reshape(list_of_lengths(shape))
)"},
    {"joined_flat", R"(
def joined_flat(tensors: List[Tensor]) -> Tensor:
    return torch.cat([t.reshape([-1]) for t in tensors])
)"},
    {"cut_like", R"(
def cut_like(flat: Tensor, tensors: List[Tensor]) -> List[Tensor]:
    out: List[Tensor] = []
    at = 0
    for t in tensors:
        out.append(flat.narrow(0, at, t.numel()).view_as(t))
        at += t.numel()
    return out
)"},
    {"as_tensor_made", R"(
def as_tensor_made(data: Tensor, dtype: Optional[int], device: Optional[Device]) -> Tensor:
    if device is not None:
        data = data.to(device)
    if dtype is not None:
        data = data.to(dtype)
    return data
)"},
    {"rrelu_with_noise_made", R"(
def rrelu_with_noise_made(self: Tensor, noise: Tensor, lower: number, upper: number, training: bool) -> Tensor:
    if not training:
        return torch.nn.functional.leaky_relu(self, (float(lower) + float(upper)) / 2)
    # Draws the factors, which are 1 for positive elements.
    with torch.no_grad():
        torch.ops.aten.rrelu_with_noise(self.detach(), noise, lower, upper, True)
    return self * noise.clone()
)"},
    // Of a learned grid: beyond its ends a value moves with them, within it by what rounding does.
    {"on_learned_grid", R"(
def on_learned_grid(self: Tensor, scale: Tensor, zero: Tensor, quant_min: int, quant_max: int) -> Tuple[Tensor, Tensor]:
    q = torch.round(zero + self * (1.0 / scale))
    return q < quant_min, q > quant_max
)"},
    {"learned_scale_gradient", R"(
def learned_scale_gradient(grad: Tensor, self: Tensor, scale: Tensor, zero_point: Tensor, quant_min: int, quant_max: int, factor: float) -> Tensor:
    zero = torch.round(zero_point).clamp(quant_min, quant_max)
    below, above = on_learned_grid(self, scale, zero, quant_min, quant_max)
    q = torch.round(zero + self * (1.0 / scale)).clamp(quant_min, quant_max)
    within = ((q - zero) * scale - self) * (1.0 / scale)
    slope = torch.where(below, quant_min - zero, torch.where(above, quant_max - zero, within))
    return grad * slope * factor
)"},
    {"learned_zero_gradient", R"(
def learned_zero_gradient(grad: Tensor, self: Tensor, scale: Tensor, zero_point: Tensor, quant_min: int, quant_max: int, factor: float) -> Tensor:
    zero = torch.round(zero_point).clamp(quant_min, quant_max)
    below, above = on_learned_grid(self, scale, zero, quant_min, quant_max)
    return torch.where(below | above, -1.0 * scale, torch.zeros_like(scale)) * grad * factor
)"},
    {"learned_self_gradient", R"(
def learned_self_gradient(grad: Tensor, self: Tensor, scale: Tensor, zero_point: Tensor, quant_min: int, quant_max: int) -> Tensor:
    zero = torch.round(zero_point).clamp(quant_min, quant_max)
    below, above = on_learned_grid(self, scale, zero, quant_min, quant_max)
    return grad.masked_fill(below | above, 0.0)
)"},
    {"along_axis", R"(
def along_axis(channels: Tensor, self: Tensor, axis: int) -> Tensor:
    size = [1] * self.dim()
    size[axis] = channels.numel()
    return channels.reshape(size)
)"},
    {"summed_but_axis", R"(
def summed_but_axis(grad: Tensor, axis: int) -> Tensor:
    for d in range(grad.dim() - 1, -1, -1):
        if d != (axis + grad.dim() if axis < 0 else axis):
            grad = grad.sum(d)
    return grad
)"},
};

// The arguments of batch_norm_made, but for some.
#define WICK_NORM(middle) "(input, weight, bias, " middle ", eps)"

constexpr FormulaText kRemainingFormulas[] = {
    // Changes in place whose plain forms have derivatives.
    {"aten::copy_.int, aten::copy_.float, aten::zero", "self: torch.zeros_like(grad)"},
    {"aten::ldexp_", "return self * torch.pow(2.0, other)"},
    {"aten::transpose_", "self: grad.transpose(dim0, dim1)"},
    {"aten::resize_, aten::resize_as_, aten::_resize_output_",
     "refused cannot resize variables that require grad"},
    {R"(aten::resize, aten::resize_as, aten::_resize_output, aten::set_, aten::set_.source_Tensor,
         aten::set_.source_Tensor_storage_offset, aten::set.source_Tensor)",
     kNotInPyTorch},
    {"aten::_reshape_alias, aten::_reshape_alias_copy", "self: grad.reshape(self_size)"},
    {"aten::view.dtype, aten::view_copy.dtype, aten::where.Scalar", "none"},
    {"aten::as_tensor", "return as_tensor_made(data, dtype, device)"},

    // Made of others.
    {"aten::_reshape_from_tensor", "return reshaped_as(self, shape)"},
    {"aten::_trilinear", "return trilinear_made(i1, i2, i3, expand1, expand2, expand3, sumdim)"},
    {"aten::einsum.sublist, aten::sorted.Tensor", "others"},
    {"aten::flatten_dense_tensors", "return joined_flat(tensors)"},
    {"aten::unflatten_dense_tensors", "return cut_like(flat, tensors)"},
    {"prim::add_optional", "return input if bias is None else input + bias"},
    {"prim::expand_copy", "return self.expand(size).clone()"},
    {"prim::view_copy", "return self.reshape(size).clone()"},
    {"aten::log_sigmoid_forward", "results 0\nself: grad0 * torch.sigmoid(-self)"},
    {"aten::rrelu_with_noise", "return rrelu_with_noise_made(self, noise, lower, upper, training)"},
    {"aten::aminmax, aten::narrow_copy", kNotInPyTorch},
    {"prim::squeeze_copy", "return self.squeeze().clone()"},
    {"prim::squeeze_copy.dim", "return self.squeeze(dim).clone()"},
    {"prim::unsqueeze_copy", "return self.unsqueeze(dim).clone()"},
    {"prim::reshape_copy", "return self.reshape(shape).clone()"},
    {"prim::expand_as_copy", "return self.expand_as(other).clone()"},
    {"aten::true_divide.Tensor, aten::true_divide.Scalar", "return torch.div(self, other)"},
    {"aten::special_xlogy.other_scalar, aten::special_xlogy.self_scalar",
     "return torch.xlogy(self, other)"},
    {"aten::native_dropout_backward", "grad_output: grad * mask * scale"},
    {"aten::_safe_softmax", "return safe_softmax_made(self, dim, dtype)"},
    {"aten::rms_norm", "return rms_norm_made(input, normalized_shape, weight, eps)[0]"},
    {"aten::_fused_rms_norm", "return rms_norm_made(input, normalized_shape, weight, eps)"},
    {"aten::_unsafe_index.Tensor", "return torch.ops.aten.index(self, indices)"},
    {R"(aten::_unsafe_index_put, aten::_index_put_impl.hacked_twin,
         aten::_index_put_impl_.hacked_twin)",
     "return torch.index_put(self, indices, values, accumulate)"},
    {"aten::_native_batch_norm_legit",
     "return batch_norm_made" WICK_NORM("running_mean, running_var, training, momentum")},
    {"aten::_native_batch_norm_legit.no_stats",
     "return batch_norm_made" WICK_NORM("None, None, training, 0.0")},
    {"aten::_native_batch_norm_legit_no_training",
     "return batch_norm_made" WICK_NORM("running_mean, running_var, False, 0.0")},
    {"aten::_batch_norm_no_update",
     "return batch_norm_four" WICK_NORM("running_mean, running_var, False, 0.0")},
    {"aten::_batch_norm_with_update",
     "return batch_norm_four" WICK_NORM("running_mean, running_var, True, momentum")},
    {"aten::gradient.scalarint", "return gradient_maybe_step(self, spacing, dim, edge_order)"},
    {"aten::gradient.scalararray", "return gradient_one_step(self, spacing, dim, edge_order)"},
    {"aten::gradient.array", "return gradient_one_step(self, 1, dim, edge_order)"},
    {"aten::gradient.scalarrayint",
     "return gradient_steps(self, spacing, None if dim is None else [dim], edge_order)"},
    {"aten::gradient.scalarrayarray", "return gradient_steps(self, spacing, dim, edge_order)"},
    {"aten::gradient.tensorarrayint",
     "return gradient_places(self, spacing, None if dim is None else [dim], edge_order)"},
    {"aten::gradient.tensorarray", "return gradient_places(self, spacing, dim, edge_order)"},
    // Their kernels call other operators.
    {R"(aten::__interpolate, aten::__interpolate.scale_list, aten::__interpolate.size_list,
         aten::__interpolate.size_list_scale_list, aten::__upsample, aten::__upsample.size_list,
         aten::__upsample_bilinear, aten::__upsample_bilinear.scale_list,
         aten::__upsample_bilinear.size_list, aten::__upsample_bilinear.size_list_scale_list,
         aten::__upsample_nearest, aten::__upsample_nearest.size_list, aten::keys.Tensor,
         aten::remove.Tensor, aten::sort.Tensor)",
     "others"},

    // Quantization in training: the gradient of what lies on the grid.
    {"aten::fake_quantize_per_tensor_affine", R"(
return torch.fake_quantize_per_tensor_affine_cachemask(self, scale, zero_point, quant_min, quant_max)[0]
)"},
    {"aten::fake_quantize_per_tensor_affine.tensor_qparams", R"(
return torch._fake_quantize_per_tensor_affine_cachemask_tensor_qparams(self, scale, zero_point, torch.ones([1], dtype=torch.int64), quant_min, quant_max)[0]
)"},
    {R"(aten::fake_quantize_per_tensor_affine_cachemask,
         aten::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams,
         aten::_fused_moving_avg_obs_fq_helper, aten::fake_quantize_per_channel_affine_cachemask)",
     "results 0\nself: grad0 * result1"},
    {"aten::fused_moving_avg_obs_fake_quant", R"(
return torch._fused_moving_avg_obs_fq_helper(self, observer_on, fake_quant_on, running_min, running_max, scale, zero_point, averaging_const, quant_min, quant_max, ch_axis, per_row_fake_quant, symmetric_quant)[0]
)"},
    {"aten::fake_quantize_per_channel_affine", R"(
return torch.fake_quantize_per_channel_affine_cachemask(self, scale, zero_point, axis, quant_min, quant_max)[0]
)"},
    {"aten::_fake_quantize_learnable_per_tensor_affine", R"(
self: learned_self_gradient(grad, self, scale, zero_point, quant_min, quant_max)
scale: learned_scale_gradient(grad, self, scale, zero_point, quant_min, quant_max, grad_factor)
zero_point: learned_zero_gradient(grad, self, scale, zero_point, quant_min, quant_max, grad_factor)
)"},
    {"aten::_fake_quantize_learnable_per_channel_affine", R"(
let s = along_axis(scale, self, axis)
let z = along_axis(zero_point, self, axis)
self: learned_self_gradient(grad, self, s, z, quant_min, quant_max)
scale: summed_but_axis(learned_scale_gradient(grad, self, s, z, quant_min, quant_max, grad_factor), axis)
zero_point: summed_but_axis(learned_zero_gradient(grad, self, s, z, quant_min, quant_max, grad_factor), axis)
)"},

    // Samples. Those that do not depend on what they are drawn from smoothly have zeros.
    {"aten::_standard_gamma", "self: grad * torch._standard_gamma_grad(self, result)"},
    {"aten::_standard_gamma_grad", kSecond},
    {"aten::_sample_dirichlet",
     "missing the derivative of a sample of beta distributions is not known"},
    {"aten::bernoulli.Tensor", "self: torch.zeros_like(grad)\np: torch.zeros_like(grad)"},
    {R"(aten::cauchy, aten::exponential, aten::geometric, aten::log_normal, aten::normal_functional,
         aten::random, aten::random.from, aten::random.to, aten::uniform, aten::poisson)",
     "self: torch.zeros_like(grad)"},
    {"aten::normal.Tensor_Tensor", "mean: torch.zeros_like(grad)\nstd: torch.zeros_like(grad)"},
    {"aten::normal.Tensor_float", "mean: torch.zeros_like(grad)"},
    {"aten::normal.float_Tensor", "std: torch.zeros_like(grad)"},
    {R"(aten::multinomial, aten::_no_grad_normal_, aten::_no_grad_uniform_,
         aten::_no_grad_embedding_renorm_)",
     "none"},
    {"aten::binomial", kNotInPyTorch},

    // Nothing to follow.
    {R"(aten::isneginf, aten::isposinf, aten::signbit, aten::bucketize.Tensor,
         aten::bucketize.Scalar, aten::searchsorted.Tensor, aten::searchsorted.Scalar,
         aten::isin.Tensor_Tensor, aten::isin.Tensor_Scalar, aten::isin.Scalar_Tensor, aten::histc,
         aten::_cast_Byte, aten::_cast_Char, aten::_cast_Int, aten::_cast_Long, aten::_cast_Short,
         aten::batch_norm_update_stats, aten::as_tensor.list, aten::as_tensor.int,
         aten::as_tensor.float, aten::as_tensor.bool, aten::as_tensor.complex, aten::tensor,
         aten::tensor.int, aten::tensor.float, aten::tensor.bool, aten::tensor.complex,
         aten::fft_fftfreq, aten::fft_rfftfreq, aten::from_file, aten::_list_to_tensor, aten::data,
         aten::ccol_indices, aten::ccol_indices_copy, aten::col_indices, aten::col_indices_copy,
         aten::crow_indices, aten::crow_indices_copy, aten::row_indices, aten::row_indices_copy,
         aten::special_airy_ai, aten::special_bessel_j0, aten::special_bessel_j1,
         aten::special_bessel_y0, aten::special_bessel_y1, aten::special_modified_bessel_i0,
         aten::special_modified_bessel_i1, aten::special_modified_bessel_k0,
         aten::special_modified_bessel_k1, aten::special_scaled_modified_bessel_k0,
         aten::special_scaled_modified_bessel_k1, aten::special_spherical_bessel_j0, aten::gcd,
         aten::lcm, prim::data, prim::NumToTensor.Scalar, prim::NumToTensor.bool,
         profiler::_record_function_enter)",
     "none"},

    // No derivative.
    {R"(aten::floor_divide, aten::floor_divide.Scalar, aten::floor_divide_.Tensor,
         aten::heaviside, aten::special_zeta.other_scalar, aten::_saturate_weight_to_fp16,
         aten::_cummax_helper, aten::_cummin_helper, aten::bincount, aten::scatter.reduce,
         aten::scatter.value_reduce, aten::_add_relu.Tensor, aten::_add_relu.Scalar, aten::geqrf,
         aten::ormqr, aten::linalg_ldl_factor, aten::linalg_ldl_factor_ex, aten::linalg_ldl_solve,
         aten::embedding_renorm, aten::nextafter, aten::_unique, aten::_unique2, aten::unique_dim,
         aten::unique_consecutive, aten::unique_dim_consecutive, aten::histogram.bin_ct,
         aten::histogram.bins_tensor, aten::histogramdd, aten::histogramdd.int_bins,
         aten::histogramdd.TensorList_bins, aten::_histogramdd_bin_edges,
         aten::_histogramdd_from_bin_cts, aten::_histogramdd_from_bin_tensors)",
     kNotInPyTorch},
    {R"(aten::_chunk_cat, aten::_native_batch_norm_legit_functional,
         aten::_batch_norm_with_update_functional, aten::_unsafe_masked_index,
         aten::_unsafe_masked_index_put_accumulate)",
     kLater},
    {R"(aten::_to_cpu, aten::batch_norm_gather_stats, aten::batch_norm_gather_stats_with_counts,
         aten::_copy_from, aten::_copy_from_and_resize, aten::_fused_dropout,
         aten::_masked_scale, aten::_new_zeros_with_same_feature_meta, aten::_pin_memory,
         aten::batch_norm_elemt, aten::batch_norm_stats, aten::chalf, aten::glu_jvp)",
     kOtherDevices},
    {"wick::ctc_gradient, wick::grid_sampler_grid_gradient, wick::grid_sampler_input_gradient",
     kSecond},
    {R"(aten::to_padded_tensor, aten::_nested_from_padded_and_nested_example,
         aten::_nested_tensor_layer_norm, aten::_nested_tensor_softmax_with_shape,
         aten::_nested_view_from_buffer, aten::_nested_view_from_buffer_copy,
         aten::nested_to_padded_tensor)",
     kNested},
    {R"(aten::quantized_batch_norm, aten::quantized_max_pool1d, aten::quantized_max_pool2d,
         aten::_make_per_channel_quantized_tensor, aten::_make_per_tensor_quantized_tensor,
         aten::dequantize.list, aten::dequantize.self, aten::dequantize.tensor,
         aten::dequantize.tensors)",
     kQuantized},
    {R"(aten::empty_quantized, aten::int_repr, aten::q_per_channel_scales,
         aten::q_per_channel_zero_points, aten::quantize_per_channel, aten::quantize_per_tensor,
         aten::quantize_per_tensor.tensor_qparams, aten::quantize_per_tensor.tensors)",
     "none"},
};
const RegisterFormulas kRemainingRegistered(kRemainingFormulas, kRemainingHelpers);

}  // namespace

}  // namespace wick::autograd
