// Convolutions.
#include "autograd/formula.h"

namespace wick::autograd {

namespace {

constexpr HelperText kNnConvolutionHelpers[] = {
    // The sum over all but the channels; the weight tells the number of dimensions.
    {"conv_bias_gradient", R"(
def conv_bias_gradient(grad: Tensor, weight_size: List[int]) -> Tensor:
    channel = grad.dim() - len(weight_size) + 1
    return grad.sum([d for d in range(grad.dim()) if d != channel])
)"},
    // As the kernels of both gradients want it, so that it is brought there once.
    {"conv_laid_out", R"(
def conv_laid_out(grad: Tensor) -> Tensor:
    if grad.dim() == 4 and grad.dtype == torch.float:
        return grad.contiguous(memory_format=torch.channels_last)
    return grad
)"},
    // `laid_out`: the gradient by conv_laid_out. Images stay as their gradients came.
    {"conv_for_input", R"(
def conv_for_input(laid_out: Tensor, grad: Tensor, weight: Tensor, input_size: List[int], stride: List[int], padding: List[int], dilation: List[int], groups: int) -> Tensor:
    out = torch.ops.wick.conv_input_gradient(laid_out, weight.conj(), input_size, stride, padding, dilation, False, [0], groups)
    if grad.dim() == 4 and not grad.is_contiguous() and grad.is_contiguous(memory_format=torch.channels_last):
        return out
    return out.contiguous()
)"},
    {"conv_training_layout", R"(
def conv_training_layout(input: Tensor) -> Tensor:
    if input.dim() == 4 and input.dtype == torch.float:
        return torch.ops.wick.channels_innermost(input)
    return input
)"},
    {"conv_for_weight", R"(
def conv_for_weight(grad: Tensor, input: Tensor, weight_size: List[int], stride: List[int], padding: List[int], dilation: List[int], groups: int) -> Tensor:
    return torch.ops.wick.conv_weight_gradient(grad, input.conj(), weight_size, stride, padding, dilation, False, [0], groups)
)"},
    {"transposed_conv_for_input", R"(
def transposed_conv_for_input(grad: Tensor, weight: Tensor, input_size: List[int], stride: List[int], padding: List[int], output_padding: List[int], dilation: List[int], groups: int) -> Tensor:
    return torch.ops.wick.conv_input_gradient(grad, weight.conj(), input_size, stride, padding, dilation, True, output_padding, groups)
)"},
    {"transposed_conv_for_weight", R"(
def transposed_conv_for_weight(grad: Tensor, input: Tensor, weight_size: List[int], stride: List[int], padding: List[int], output_padding: List[int], dilation: List[int], groups: int) -> Tensor:
    return torch.ops.wick.conv_weight_gradient(grad, input.conj(), weight_size, stride, padding, dilation, True, output_padding, groups)
)"},
    // padding="same" may need one element more at the end than at the beginning.
    {"conv_named_padding", R"(
def conv_named_padding(input: Tensor, weight: Tensor, bias: Optional[Tensor], stride: List[int], padding: str, dilation: List[int], groups: int) -> Tensor:
    n = weight.dim() - 2
    if padding == 'valid':
        return torch.convolution(input, weight, bias, stride, [0], dilation, False, [0], groups)
    if padding != 'same':
        raise RuntimeError("Invalid padding string: '" + padding + "'")
    for s in stride:
        if s != 1:
            raise RuntimeError("padding='same' is not supported for strided convolutions")
    before: List[int] = []
    rest: List[int] = []
    uneven = False
    for d in range(n):
        step = dilation[d] if len(dilation) == n else dilation[0]
        total = step * (weight.size(2 + d) - 1)
        before.append(total // 2)
        rest.insert(0, total % 2)
        rest.insert(0, 0)
        if total % 2 != 0:
            uneven = True
    padded = torch.constant_pad_nd(input, rest, 0) if uneven else input
    return torch.convolution(padded, weight, bias, stride, before, dilation, False, [0], groups)
)"},
    {"conv_backward_made", R"(
def conv_backward_made(grad: Tensor, input: Tensor, weight: Tensor, stride: List[int], padding: List[int], dilation: List[int], transposed: bool, output_padding: List[int], groups: int, output_mask: List[bool]) -> Tuple[Optional[Tensor], Optional[Tensor], Optional[Tensor]]:
    for_input: Optional[Tensor] = None
    for_weight: Optional[Tensor] = None
    for_bias: Optional[Tensor] = None
    if output_mask[0]:
        for_input = torch.ops.wick.conv_input_gradient(grad, weight.conj(), input.size(), stride, padding, dilation, transposed, output_padding, groups)
    if output_mask[1]:
        for_weight = torch.ops.wick.conv_weight_gradient(grad, input.conj(), weight.size(), stride, padding, dilation, transposed, output_padding, groups)
    if output_mask[2]:
        for_bias = conv_bias_gradient(grad, weight.size())
    return (for_input, for_weight, for_bias)
)"},
    {"conv_fused_made", R"(
def conv_fused_made(input: Tensor, weight: Tensor, bias: Optional[Tensor], residual: Optional[Tensor], stride: List[int], padding: List[int], dilation: List[int], groups: int, activation: str) -> Tensor:
    out = torch.conv2d(input, weight, bias, stride, padding, dilation, groups)
    if residual is not None:
        out = out + residual
    return epilogue_made(out, activation)
)"},
    {"conv_tbc_made", R"(
def conv_tbc_made(self: Tensor, weight: Tensor, bias: Tensor, pad: int) -> Tensor:
    out = torch.conv1d(self.permute([1, 2, 0]), weight.permute([2, 1, 0]), bias, [1], [pad], [1], 1)
    return out.permute([2, 0, 1]).contiguous()
)"},
};

#define WICK_PLAIN(input, groups)                                                                \
  "let laid_out = conv_laid_out(grad)\n" input ": conv_for_input(laid_out, grad, weight, " input \
  "_size, stride, padding, dilation, " groups                                                    \
  ")\n"                                                                                          \
  "weight: conv_for_weight(laid_out, " input ", weight_size, stride, padding, dilation, " groups \
  ")\n"                                                                                          \
  "bias: conv_bias_gradient(grad, weight_size)"
#define WICK_TRAINED(spatial)                                                            \
  "return torch.ops.wick.convolution_in_training(input, weight, bias, stride, padding, " \
  "dilation, groups, " spatial ")"
#define WICK_TRANSPOSED(input, groups)                                      \
  input ": transposed_conv_for_input(grad, weight, " input                  \
        "_size, stride, padding, output_padding, dilation, " groups         \
        ")\n"                                                               \
        "weight: transposed_conv_for_weight(grad, " input                   \
        ", weight_size, stride, padding, output_padding, dilation, " groups \
        ")\n"                                                               \
        "bias: conv_bias_gradient(grad, weight_size)"
#define WICK_DEPTHWISE "(self_size[0] if len(self_size) == len(weight_size) - 1 else self_size[1])"

constexpr FormulaText kNnConvolutionFormulas[] = {
    {"aten::conv1d", WICK_TRAINED("1")},
    {"aten::conv2d", WICK_TRAINED("2")},
    {"aten::conv3d", WICK_TRAINED("3")},
    {"wick::convolution_in_training", WICK_PLAIN("input", "groups")},
    {"wick::training_layout", "return conv_training_layout(self)"},
    {"wick::channels_innermost", "self: grad.contiguous()"},
    {R"(aten::conv1d.padding, aten::conv2d.padding, aten::conv3d.padding, aten::_convolution_mode)",
     "return conv_named_padding(input, weight, bias, stride, padding, dilation, groups)"},
    {"aten::conv_transpose1d, aten::conv_transpose2d.input, aten::conv_transpose3d.input",
     WICK_TRANSPOSED("input", "groups")},
    // Transposed or not, as an argument says.
    {R"(aten::_convolution, aten::_convolution.deprecated, aten::convolution,
         aten::convolution_overrideable)",
     R"(
input: torch.ops.wick.conv_input_gradient(grad, weight.conj(), input_size, stride, padding, dilation, transposed, output_padding, groups)
weight: torch.ops.wick.conv_weight_gradient(grad, input.conj(), weight_size, stride, padding, dilation, transposed, output_padding, groups)
bias: conv_bias_gradient(grad, weight_size)
)"},
    {"aten::mkldnn_convolution", WICK_PLAIN("self", "groups")},
    {R"(aten::thnn_conv2d, aten::_slow_conv2d_forward, aten::slow_conv3d, aten::slow_conv3d_forward)",
     R"(
self: conv_for_input(grad, grad, weight, self_size, stride, padding, [1], 1)
weight: conv_for_weight(grad, self, weight_size, stride, padding, [1], 1)
bias: conv_bias_gradient(grad, weight_size)
)"},
    {"aten::slow_conv_dilated2d, aten::slow_conv_dilated3d", WICK_PLAIN("self", "1")},
    {"aten::_conv_depthwise2d, aten::conv_depthwise3d", WICK_PLAIN("self", WICK_DEPTHWISE)},
    {"aten::slow_conv_transpose2d, aten::slow_conv_transpose3d", WICK_TRANSPOSED("self", "1")},
    {"wick::conv2d_fused",
     "return conv_fused_made(input, weight, bias, residual, stride, padding, dilation, groups, "
     "activation)"},
    {"aten::conv_tbc", "return conv_tbc_made(self, weight, bias, pad)"},
    {"aten::convolution_backward",
     "return conv_backward_made(grad_output, input, weight, stride, padding, dilation, transposed, "
     "output_padding, groups, output_mask)"},
    {"wick::conv_input_gradient", R"(
grad_output: torch.convolution(grad, weight.conj(), None, stride, padding, dilation, transposed, output_padding, groups)
weight: torch.ops.wick.conv_weight_gradient(grad_output.conj(), grad, weight_size, stride, padding, dilation, transposed, output_padding, groups)
)"},
    {"wick::conv_weight_gradient", R"(
grad_output: torch.convolution(input.conj(), grad, None, stride, padding, dilation, transposed, output_padding, groups)
input: torch.ops.wick.conv_input_gradient(grad_output.conj(), grad, input_size, stride, padding, dilation, transposed, output_padding, groups)
)"},
};
const RegisterFormulas kNnConvolutionRegistered(kNnConvolutionFormulas, kNnConvolutionHelpers);

}  // namespace

}  // namespace wick::autograd
