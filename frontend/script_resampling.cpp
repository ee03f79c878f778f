// torch.nn.functional: resampling, folding, attention.
#include "frontend/script_library.h"

namespace wick {

const char* const kScriptResampling = R"script(
def _resampled_size(input: Tensor, size: Optional[List[int]], scale_factor: Optional[List[float]]) -> List[int]:
    n = input.dim() - 2
    if size is not None:
        if scale_factor is not None:
            raise ValueError("only one of size or scale_factor should be defined")
        if len(size) != n:
            raise ValueError("Input and output must have the same number of spatial dimensions")
        return size
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if len(scale_factor) != n:
        raise ValueError("Input and scale_factor must have the same number of spatial dimensions")
    return [int(math.floor(float(input.size(i + 2)) * scale_factor[i])) for i in range(n)]

def _interpolate(input: Tensor, size: Optional[List[int]], scale_factor: Optional[List[float]], mode: str,
                 align_corners: Optional[bool], recompute_scale_factor: Optional[bool], antialias: bool) -> Tensor:
    corners = False
    if mode == "nearest" or mode == "area" or mode == "nearest-exact":
        if align_corners is not None:
            raise ValueError("align_corners option can only be set with the interpolating modes: linear | bilinear | "
                             "bicubic | trilinear")
    elif align_corners is not None:
        corners = align_corners
    dims = input.dim() - 2
    out_size = size
    scales = scale_factor
    if size is not None:
        out_size = _resampled_size(input, size, scale_factor)
    elif recompute_scale_factor is not None and recompute_scale_factor:
        out_size = _resampled_size(input, None, scale_factor)
        scales = None
    elif scale_factor is None or len(scale_factor) != dims or mode == "area":
        out_size = _resampled_size(input, None, scale_factor)
        scales = None if mode == "area" else scales
    if antialias and not ((mode == "bilinear" or mode == "bicubic") and input.dim() == 4):
        raise ValueError("Anti-alias option is only supported for bilinear and bicubic modes")
    if mode == "nearest":
        if dims == 1:
            return torch._C._nn.upsample_nearest1d(input, out_size, scales)
        if dims == 2:
            return torch._C._nn.upsample_nearest2d(input, out_size, scales)
        if dims == 3:
            return torch._C._nn.upsample_nearest3d(input, out_size, scales)
    if mode == "nearest-exact":
        if dims == 1:
            return torch._C._nn._upsample_nearest_exact1d(input, out_size, scales)
        if dims == 2:
            return torch._C._nn._upsample_nearest_exact2d(input, out_size, scales)
        if dims == 3:
            return torch._C._nn._upsample_nearest_exact3d(input, out_size, scales)
    if mode == "area":
        assert out_size is not None
        if dims == 1:
            return torch.adaptive_avg_pool1d(input, out_size)
        if dims == 2:
            return torch._C._nn.adaptive_avg_pool2d(input, out_size)
        if dims == 3:
            return torch._C._nn.adaptive_avg_pool3d(input, out_size)
    if mode == "linear" and dims == 1:
        return torch._C._nn.upsample_linear1d(input, out_size, corners, scales)
    if mode == "bilinear" and dims == 2:
        if antialias:
            return torch._C._nn._upsample_bilinear2d_aa(input, out_size, corners, scales)
        return torch._C._nn.upsample_bilinear2d(input, out_size, corners, scales)
    if mode == "trilinear" and dims == 3:
        return torch._C._nn.upsample_trilinear3d(input, out_size, corners, scales)
    if mode == "bicubic" and dims == 2:
        if antialias:
            return torch._C._nn._upsample_bicubic2d_aa(input, out_size, corners, scales)
        return torch._C._nn.upsample_bicubic2d(input, out_size, corners, scales)
    raise RuntimeError("interpolate: the mode '" + mode + "' does not fit an input of " + str(input.dim()) +
                       " dimensions")

def _interpolate_size(input: Tensor, size: Optional[List[int]] = None, scale_factor: Optional[List[float]] = None,
                      mode: str = "nearest", align_corners: Optional[bool] = None,
                      recompute_scale_factor: Optional[bool] = None, antialias: bool = False) -> Tensor:
    return _interpolate(input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias)

def _interpolate_int(input: Tensor, size: Optional[int] = None, scale_factor: Optional[List[float]] = None,
                     mode: str = "nearest", align_corners: Optional[bool] = None,
                     recompute_scale_factor: Optional[bool] = None, antialias: bool = False) -> Tensor:
    sizes = torch.jit.annotate(Optional[List[int]], None)
    if size is not None:
        sizes = [size for i in range(input.dim() - 2)]
    return _interpolate(input, sizes, scale_factor, mode, align_corners, recompute_scale_factor, antialias)

def _upsample_int(input: Tensor, mode: str, align: Optional[bool], size: Optional[int], scale_factor: Optional[float]) -> Tensor:
    sizes = torch.jit.annotate(Optional[List[int]], None)
    scales = torch.jit.annotate(Optional[List[float]], None)
    if size is not None:
        sizes = [size for i in range(input.dim() - 2)]
    if scale_factor is not None:
        scales = [scale_factor for i in range(input.dim() - 2)]
    return _interpolate(input, sizes, scales, mode, align, None, False)

def _upsample_nearest_int(input: Tensor, size: Optional[int] = None, scale_factor: Optional[float] = None) -> Tensor:
    return _upsample_int(input, "nearest", None, size, scale_factor)

def _upsample_nearest_size(input: Tensor, size: Optional[List[int]] = None, scale_factor: Optional[float] = None) -> Tensor:
    return _interpolate_scale(input, size, scale_factor, "nearest")

def _upsample_bilinear_int(input: Tensor, size: Optional[int] = None, scale_factor: Optional[float] = None) -> Tensor:
    return _upsample_int(input, "bilinear", True, size, scale_factor)

def _upsample_bilinear_size(input: Tensor, size: Optional[List[int]] = None, scale_factor: Optional[List[float]] = None) -> Tensor:
    return _interpolate(input, size, scale_factor, "bilinear", True, None, False)

def _interpolate_scale(input: Tensor, size: Optional[List[int]] = None, scale_factor: Optional[float] = None,
                       mode: str = "nearest", align_corners: Optional[bool] = None,
                       recompute_scale_factor: Optional[bool] = None, antialias: bool = False) -> Tensor:
    scales = torch.jit.annotate(Optional[List[float]], None)
    if scale_factor is not None:
        scales = [scale_factor for i in range(input.dim() - 2)]
    return _interpolate(input, size, scales, mode, align_corners, recompute_scale_factor, antialias)

def grid_sample(input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros",
                align_corners: Optional[bool] = None) -> Tensor:
    if mode == "bilinear":
        mode_number = 0
    elif mode == "nearest":
        mode_number = 1
    elif mode == "bicubic":
        mode_number = 2
    else:
        raise ValueError("grid_sample: mode must be 'bilinear', 'nearest' or 'bicubic', found '" + mode + "'")
    if padding_mode == "zeros":
        padding_number = 0
    elif padding_mode == "border":
        padding_number = 1
    elif padding_mode == "reflection":
        padding_number = 2
    else:
        raise ValueError("grid_sample: padding_mode must be 'zeros', 'border' or 'reflection', found '" +
                         padding_mode + "'")
    corners = False if align_corners is None else align_corners
    return torch.grid_sampler(input, grid, mode_number, padding_number, corners)

def affine_grid(theta: Tensor, size: List[int], align_corners: Optional[bool] = None) -> Tensor:
    if not theta.is_floating_point():
        raise ValueError("Expected theta to have floating point type")
    if min(size) <= 0:
        raise ValueError("Expected non-zero, positive output size. Got " + str(size))
    corners = False if align_corners is None else align_corners
    return torch.affine_grid_generator(theta, size, corners)

def unfold(input: Tensor, kernel_size: BroadcastingList2[int], dilation: BroadcastingList2[int] = 1,
           padding: BroadcastingList2[int] = 0, stride: BroadcastingList2[int] = 1) -> Tensor:
    return torch._C._nn.im2col(input, kernel_size, dilation, padding, stride)

def fold(input: Tensor, output_size: BroadcastingList2[int], kernel_size: BroadcastingList2[int],
         dilation: BroadcastingList2[int] = 1, padding: BroadcastingList2[int] = 0,
         stride: BroadcastingList2[int] = 1) -> Tensor:
    return torch._C._nn.col2im(input, output_size, kernel_size, dilation, padding, stride)

def pad(input: Tensor, pad: List[int], mode: str = "constant", value: Optional[float] = None) -> Tensor:
    return torch._C._nn.pad(input, pad, mode, value)
)script";

const char* const kScriptAttention = R"script(
def multi_head_attention_forward(query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int,
                                 in_proj_weight: Optional[Tensor], in_proj_bias: Optional[Tensor],
                                 bias_k: Optional[Tensor], bias_v: Optional[Tensor], add_zero_attn: bool,
                                 dropout_p: float, out_proj_weight: Tensor, out_proj_bias: Optional[Tensor],
                                 training: bool = True, key_padding_mask: Optional[Tensor] = None,
                                 need_weights: bool = True, attn_mask: Optional[Tensor] = None,
                                 use_separate_proj_weight: bool = False, q_proj_weight: Optional[Tensor] = None,
                                 k_proj_weight: Optional[Tensor] = None, v_proj_weight: Optional[Tensor] = None,
                                 static_k: Optional[Tensor] = None, static_v: Optional[Tensor] = None,
                                 average_attn_weights: bool = True) -> Tuple[Tensor, Optional[Tensor]]:
    batched = query.dim() == 3
    if not batched:
        query = query.unsqueeze(1)
        key = key.unsqueeze(1)
        value = value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    length, batch, width = query.shape
    assert width == embed_dim_to_check, "was expecting embedding dimension of " + str(embed_dim_to_check)
    head_dim = width // num_heads
    assert head_dim * num_heads == width, "embed_dim must be divisible by num_heads"
    bias_q_in = torch.jit.annotate(Optional[Tensor], None)
    bias_k_in = torch.jit.annotate(Optional[Tensor], None)
    bias_v_in = torch.jit.annotate(Optional[Tensor], None)
    if in_proj_bias is not None:
        biases = in_proj_bias.chunk(3)
        bias_q_in = biases[0]
        bias_k_in = biases[1]
        bias_v_in = biases[2]
    if use_separate_proj_weight:
        assert q_proj_weight is not None, "use_separate_proj_weight is True but q_proj_weight is None"
        assert k_proj_weight is not None, "use_separate_proj_weight is True but k_proj_weight is None"
        assert v_proj_weight is not None, "use_separate_proj_weight is True but v_proj_weight is None"
        q = torch.nn.functional.linear(query, q_proj_weight, bias_q_in)
        k = torch.nn.functional.linear(key, k_proj_weight, bias_k_in)
        v = torch.nn.functional.linear(value, v_proj_weight, bias_v_in)
    else:
        assert in_proj_weight is not None, "use_separate_proj_weight is False but in_proj_weight is None"
        weights = in_proj_weight.chunk(3)
        q = torch.nn.functional.linear(query, weights[0], bias_q_in)
        k = torch.nn.functional.linear(key, weights[1], bias_k_in)
        v = torch.nn.functional.linear(value, weights[2], bias_v_in)
    if attn_mask is not None:
        if attn_mask.dim() == 2:
            attn_mask = attn_mask.unsqueeze(0)
        elif attn_mask.dim() != 3:
            raise RuntimeError("attn_mask's dimension " + str(attn_mask.dim()) + " is not supported")
    if bias_k is not None and bias_v is not None:
        k = torch.cat([k, bias_k.repeat(1, batch, 1)])
        v = torch.cat([v, bias_v.repeat(1, batch, 1)])
        if attn_mask is not None:
            attn_mask = torch.constant_pad_nd(attn_mask, [0, 1])
        if key_padding_mask is not None:
            key_padding_mask = torch.constant_pad_nd(key_padding_mask, [0, 1])
    q = q.contiguous().view(length, batch * num_heads, head_dim).transpose(0, 1)
    if static_k is None:
        k = k.contiguous().view(k.shape[0], batch * num_heads, head_dim).transpose(0, 1)
    else:
        k = static_k
    if static_v is None:
        v = v.contiguous().view(v.shape[0], batch * num_heads, head_dim).transpose(0, 1)
    else:
        v = static_v
    if add_zero_attn:
        shape = [batch * num_heads, 1, head_dim]
        k = torch.cat([k, torch.zeros(shape, dtype=k.dtype, device=k.device)], dim=1)
        v = torch.cat([v, torch.zeros(shape, dtype=v.dtype, device=v.device)], dim=1)
        if attn_mask is not None:
            attn_mask = torch.constant_pad_nd(attn_mask, [0, 1])
        if key_padding_mask is not None:
            key_padding_mask = torch.constant_pad_nd(key_padding_mask, [0, 1])
    source = k.size(1)
    if key_padding_mask is not None:
        padding = key_padding_mask.view(batch, 1, 1, source).expand(-1, num_heads, -1, -1)
        padding = padding.reshape(batch * num_heads, 1, source)
        if attn_mask is None:
            attn_mask = padding
        elif attn_mask.dtype == torch.bool:
            attn_mask = attn_mask.logical_or(padding)
        else:
            attn_mask = attn_mask.masked_fill(padding, float("-inf"))
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = torch.zeros_like(attn_mask, dtype=q.dtype).masked_fill_(attn_mask, float("-inf"))
    if not training:
        dropout_p = 0.0
    scores = torch.bmm(q / math.sqrt(float(head_dim)), k.transpose(-2, -1))
    if attn_mask is not None:
        scores = scores + attn_mask
    attention = torch.softmax(scores, -1)
    if dropout_p > 0.0:
        attention = torch.dropout(attention, dropout_p, True)
    out = torch.bmm(attention, v).transpose(0, 1).contiguous().view(length * batch, width)
    out = torch.nn.functional.linear(out, out_proj_weight, out_proj_bias).view(length, batch, width)
    if not batched:
        out = out.squeeze(1)
    if not need_weights:
        return out, None
    attention = attention.view(batch, num_heads, length, source)
    if average_attn_weights:
        attention = attention.sum(dim=1) / num_heads
    if not batched:
        attention = attention.squeeze(0)
    return out, attention
)script";

}  // namespace wick
