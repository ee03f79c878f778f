// Operators that exported programs (torch.export) name and TorchScript does not: kernels for attention under the names of
// their libraries, and derivatives that a graph of both passes holds as operators.
#include "frontend/script_library.h"

namespace wick {

const char* const kScriptExported = R"script(
def _attention_logsumexp(query: Tensor, key: Tensor, attn_mask: Optional[Tensor], is_causal: bool, scale: Optional[float]) -> Tensor:
    factor = scale if scale is not None else 1.0 / math.sqrt(float(query.size(-1)))
    scores = torch.matmul(query, key.transpose(-2, -1)).to(torch.float32) * factor
    if is_causal:
        allowed = torch.ones([query.size(-2), key.size(-2)], dtype=torch.bool, device=query.device).tril()
        scores = scores.masked_fill(allowed.logical_not(), float("-inf"))
    if attn_mask is not None:
        if attn_mask.dtype == torch.bool:
            scores = scores.masked_fill(attn_mask.logical_not(), float("-inf"))
        else:
            scores = scores + attn_mask
    return scores.logsumexp(-1)

def _scaled_dot_product_flash_attention_for_cpu(query: Tensor, key: Tensor, value: Tensor, dropout_p: float = 0.0,
        is_causal: bool = False, *, attn_mask: Optional[Tensor] = None, scale: Optional[float] = None) -> Tuple[Tensor, Tensor]:
    out = torch.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale=scale)
    return out, _attention_logsumexp(query, key, attn_mask, is_causal, scale)

def _scaled_dot_product_flash_attention(query: Tensor, key: Tensor, value: Tensor, dropout_p: float = 0.0,
        is_causal: bool = False, return_debug_mask: bool = False, *, scale: Optional[float] = None) -> Tuple[Tensor, Tensor, Tensor, Tensor, int, int, Tensor, Tensor, Tensor]:
    if return_debug_mask:
        raise RuntimeError("_scaled_dot_product_flash_attention: return_debug_mask is not supported")
    out = torch.scaled_dot_product_attention(query, key, value, None, dropout_p, is_causal, scale=scale)
    none = torch.empty([0], dtype=torch.int64, device=query.device)
    return out, _attention_logsumexp(query, key, None, is_causal, scale), none, none, query.size(-2), key.size(-2), none, none, none

def _scaled_dot_product_efficient_attention(query: Tensor, key: Tensor, value: Tensor, attn_bias: Optional[Tensor],
        compute_log_sumexp: bool, dropout_p: float = 0.0, is_causal: bool = False, *, scale: Optional[float] = None) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    out = torch.scaled_dot_product_attention(query, key, value, attn_bias, dropout_p, is_causal, scale=scale)
    none = torch.empty([], dtype=torch.int64, device=query.device)
    return out, _attention_logsumexp(query, key, attn_bias, is_causal, scale), none, none

def _scaled_dot_product_cudnn_attention(query: Tensor, key: Tensor, value: Tensor, attn_bias: Optional[Tensor],
        compute_log_sumexp: bool, dropout_p: float = 0.0, is_causal: bool = False, return_debug_mask: bool = False, *,
        scale: Optional[float] = None) -> Tuple[Tensor, Tensor, Tensor, Tensor, int, int, Tensor, Tensor, Tensor]:
    if return_debug_mask:
        raise RuntimeError("_scaled_dot_product_cudnn_attention: return_debug_mask is not supported")
    out = torch.scaled_dot_product_attention(query, key, value, attn_bias, dropout_p, is_causal, scale=scale)
    none = torch.empty([0], dtype=torch.int64, device=query.device)
    return out, _attention_logsumexp(query, key, attn_bias, is_causal, scale), none, none, query.size(-2), key.size(-2), none, none, none

def _functional_assert_async(self: Tensor, assert_msg: str, dep_token: Tensor) -> Tensor:
    torch._assert_async(self, assert_msg)
    return dep_token

def _functional_assert_scalar(self: number, assert_msg: str, dep_token: Tensor) -> Tensor:
    torch._assert_scalar(self, assert_msg)
    return dep_token

def _functional_sym_constrain_range(size: number, min: Optional[int], max: Optional[int], dep_token: Tensor) -> Tensor:
    torch.sym_constrain_range(size, min=min, max=max)
    return dep_token

def _functional_sym_constrain_range_for_size(size: number, min: Optional[int], max: Optional[int], dep_token: Tensor) -> Tensor:
    torch.sym_constrain_range_for_size(size, min=min, max=max)
    return dep_token

def _make_dep_token(*, dtype: Optional[int] = None, layout: Optional[int] = None, device: Optional[Device] = None,
        pin_memory: Optional[bool] = None, memory_format: Optional[int] = None) -> Tensor:
    return torch.empty([])

def _is_all_true(self: Tensor) -> Tensor:
    return self.all()

def _is_any_true(self: Tensor) -> Tensor:
    return self.any()

def isreal(self: Tensor) -> Tensor:
    return torch.ones_like(self, dtype=torch.bool) if not self.is_complex() else self.imag() == 0

def empty_permuted(size: List[int], physical_layout: List[int], *, dtype: Optional[int] = None, layout: Optional[int] = None,
        device: Optional[Device] = None, pin_memory: Optional[bool] = None) -> Tensor:
    if len(physical_layout) != len(size):
        raise RuntimeError("Number of dimensions in size does not match the length of the physical_layout")
    strides = [0] * len(size)
    stride = 1
    for i in range(len(size)):
        d = physical_layout[len(size) - 1 - i]
        if d < 0 or d >= len(size) or strides[d] != 0:
            raise RuntimeError("empty_permuted: physical_layout is no permutation")
        strides[d] = stride
        stride *= max(size[d], 1)
    return torch.empty_strided(size, strides, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory)

def _int_mm(self: Tensor, mat2: Tensor) -> Tensor:
    if self.dtype != torch.int8 or mat2.dtype != torch.int8:
        raise RuntimeError("_int_mm: expected two tensors of int8")
    return torch.mm(self.to(torch.int32), mat2.to(torch.int32))

def threshold_backward(grad_output: Tensor, self: Tensor, threshold: number) -> Tensor:
    return torch.where(self <= threshold, torch.zeros_like(grad_output), grad_output)

def gelu_backward(grad_output: Tensor, self: Tensor, *, approximate: str = "none") -> Tensor:
    if approximate == "tanh":
        inner = 0.7978845608028654 * (self + 0.044715 * self * self * self)
        t = torch.tanh(inner)
        slope = 0.7978845608028654 * (1 + 3 * 0.044715 * self * self)
        return grad_output * (0.5 * (1 + t) + 0.5 * self * (1 - t * t) * slope)
    cdf = 0.5 * (1 + torch.erf(self * 0.7071067811865476))
    return grad_output * (cdf + self * torch.exp(self * self * -0.5) * 0.3989422804014327)

def silu_backward(grad_output: Tensor, self: Tensor) -> Tensor:
    s = torch.sigmoid(self)
    return grad_output * s * (1 + self * (1 - s))

def sigmoid_backward(grad_output: Tensor, output: Tensor) -> Tensor:
    return grad_output * ((1 - output) * output)

def tanh_backward(grad_output: Tensor, output: Tensor) -> Tensor:
    return grad_output * (1 - output * output)

def hardtanh_backward(grad_output: Tensor, self: Tensor, min_val: number, max_val: number) -> Tensor:
    return torch.where((self <= min_val) | (self >= max_val), torch.zeros_like(grad_output), grad_output)

def leaky_relu_backward(grad_output: Tensor, self: Tensor, negative_slope: number, self_is_result: bool) -> Tensor:
    return torch.where(self > 0, grad_output, grad_output * negative_slope)

def elu_backward(grad_output: Tensor, alpha: number, scale: number, input_scale: number, is_result: bool, self_or_result: Tensor) -> Tensor:
    negative = grad_output * input_scale * alpha * scale * torch.exp(self_or_result * input_scale)
    if is_result:
        negative = grad_output * input_scale * (self_or_result + float(alpha) * float(scale))
    return torch.where(self_or_result <= 0, negative, grad_output * scale)

def hardswish_backward(grad_output: Tensor, self: Tensor) -> Tensor:
    inner = torch.where(self <= 3, grad_output * (self / 3 + 0.5), grad_output)
    return torch.where(self < -3, torch.zeros_like(grad_output), inner)

def hardsigmoid_backward(grad_output: Tensor, self: Tensor) -> Tensor:
    return torch.where((self > -3) & (self < 3), grad_output * (1.0 / 6.0), torch.zeros_like(grad_output))

def softplus_backward(grad_output: Tensor, self: Tensor, beta: number, threshold: number) -> Tensor:
    z = torch.exp(self * beta)
    return torch.where(self * beta > threshold, grad_output, grad_output * z / (z + 1))

def mse_loss_backward(grad_output: Tensor, self: Tensor, target: Tensor, reduction: int) -> Tensor:
    factor = 2.0 / float(self.numel()) if reduction == 1 else 2.0
    return factor * (self - target) * grad_output

def constant_pad_nd_backward(grad_output: Tensor, pad: List[int]) -> Tensor:
    return torch.constant_pad_nd(grad_output, [-p for p in pad])

def native_layer_norm_backward(grad_out: Tensor, input: Tensor, normalized_shape: List[int], mean: Tensor, rstd: Tensor,
        weight: Optional[Tensor], bias: Optional[Tensor], output_mask: List[bool]) -> Tuple[Tensor, Tensor, Tensor]:
    inner = list(range(input.dim() - len(normalized_shape), input.dim()))
    outer = list(range(input.dim() - len(normalized_shape)))
    shape = list(mean.size()) + [1] * (input.dim() - mean.dim())
    x = (input - mean.view(shape)) * rstd.view(shape)
    g = grad_out if weight is None else grad_out * weight
    grad_input = rstd.view(shape) * (g - g.mean(inner, True) - x * (g * x).mean(inner, True))
    grad_weight = grad_out * x
    grad_bias = grad_out
    if len(outer) > 0:
        grad_weight = grad_weight.sum(outer)
        grad_bias = grad_bias.sum(outer)
    return grad_input.to(input.dtype), grad_weight.to(grad_out.dtype), grad_bias

def native_group_norm_backward(grad_out: Tensor, input: Tensor, mean: Tensor, rstd: Tensor, weight: Optional[Tensor],
        N: int, C: int, HxW: int, group: int, output_mask: List[bool]) -> Tuple[Tensor, Tensor, Tensor]:
    shape = [N, group, C // group, HxW]
    x = (input.reshape(shape) - mean.view([N, group, 1, 1])) * rstd.view([N, group, 1, 1])
    g = grad_out.reshape(shape)
    grad_weight = (g * x).sum([0, 3]).view([C])
    grad_bias = g.sum([0, 3]).view([C])
    if weight is not None:
        g = g * weight.view([1, group, C // group, 1])
    grad_input = rstd.view([N, group, 1, 1]) * (g - g.mean([2, 3], True) - x * (g * x).mean([2, 3], True))
    return grad_input.view_as(input), grad_weight, grad_bias

def native_batch_norm_backward(grad_out: Tensor, input: Tensor, weight: Optional[Tensor], running_mean: Optional[Tensor],
        running_var: Optional[Tensor], save_mean: Optional[Tensor], save_invstd: Optional[Tensor], train: bool, eps: float,
        output_mask: List[bool]) -> Tuple[Tensor, Tensor, Tensor]:
    shape = [1, input.size(1)] + [1] * (input.dim() - 2)
    dims = [0] + list(range(2, input.dim()))
    mean = input
    invstd = input
    if train:
        assert save_mean is not None and save_invstd is not None
        mean = save_mean
        invstd = save_invstd
    else:
        assert running_mean is not None and running_var is not None
        mean = running_mean
        invstd = torch.rsqrt(running_var + eps)
    x = (input - mean.view(shape)) * invstd.view(shape)
    grad_weight = (grad_out * x).sum(dims)
    grad_bias = grad_out.sum(dims)
    g = grad_out if weight is None else grad_out * weight.view(shape)
    grad_input = g * invstd.view(shape)
    if train:
        grad_input = invstd.view(shape) * (g - g.mean(dims, True) - x * (g * x).mean(dims, True))
    return grad_input, grad_weight, grad_bias

def batch_norm_backward(grad_out: Tensor, input: Tensor, weight: Tensor, running_mean: Optional[Tensor],
        running_var: Optional[Tensor], save_mean: Optional[Tensor], save_var: Optional[Tensor], update: bool, eps: float,
        output_mask: List[bool], reserve: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    return torch.native_batch_norm_backward(grad_out, input, weight, running_mean, running_var, save_mean, save_var, update, eps, output_mask)

def masked_scatter_backward(grad_output: Tensor, mask: Tensor, sizes: List[int]) -> Tensor:
    count = 1
    for size in sizes:
        count *= size
    chosen = grad_output.masked_select(mask)
    missing = count - chosen.numel()
    if missing > 0:
        chosen = torch.cat([chosen, torch.zeros([missing], dtype=grad_output.dtype, device=grad_output.device)])
    return chosen.view(sizes)
)script";

}  // namespace wick
