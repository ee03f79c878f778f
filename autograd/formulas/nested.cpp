// Nested tensors. "nested aten::linear" is the formula of a call with a nested argument; most such
// calls are made of the same operator on each part.
#include "autograd/formula.h"

namespace wick::autograd {

namespace {

constexpr HelperText kNestedHelpers[] = {
    {"nested_of", R"(
def nested_of(parts: List[Tensor]) -> Tensor:
    return torch._nested_tensor_from_tensor_list(parts, None, None, None, None)
)"},
    {"nested_operand", R"(
def nested_operand(t: Tensor, other: Tensor) -> List[Tensor]:
    if t.dim() == 0:
        return [t for i in range(other.size(0))]
    if other.dim() != 0 and not torch.is_same_size(t, other):
        raise RuntimeError("expected two nested tensors of the same sizes: nested tensors do not broadcast")
    return torch.unbind(t)
)"},
    {"nested_factors", R"(
def nested_factors(a: Tensor, b: Tensor) -> Tuple[List[Tensor], List[Tensor]]:
    if a.size(0) != b.size(0):
        raise RuntimeError("expected two nested tensors of as many parts")
    return torch.unbind(a), torch.unbind(b)
)"},
    {"nested_softmax", R"(
def nested_softmax(self: Tensor, dim: int, dtype: Optional[int]) -> Tensor:
    if dim == 0 or dim == -self.dim():
        raise RuntimeError("softmax: Cannot apply softmax across nested dimension 0")
    own = dim - 1 if dim > 0 else dim
    return nested_of([torch.softmax(part, own, dtype) for part in torch.unbind(self)])
)"},
    {"nested_reshaped", R"(
def nested_reshaped(grad: Tensor, like: Tensor) -> Tensor:
    grads, parts = torch.unbind(grad), torch.unbind(like)
    return nested_of([grads[i].reshape(parts[i].size()) for i in range(len(parts))])
)"},
    {"nested_expanded", R"(
def nested_expanded(grad: Tensor, like: Tensor) -> Tensor:
    grads, parts = torch.unbind(grad), torch.unbind(like)
    return nested_of([grads[i].expand_as(parts[i]) for i in range(len(parts))])
)"},
    {"nested_selected", R"(
def nested_selected(grad: Tensor, like: Tensor, index: int) -> Tensor:
    zeros = [torch.zeros_like(part) for part in torch.unbind(like)]
    zeros[index] = grad
    return nested_of(zeros)
)"},
    {"gradient_of_padded", R"(
def gradient_of_padded(grad: Tensor, size: List[int], swapped: bool) -> Tensor:
    if not swapped:
        return torch.ops.aten.to_padded_tensor(grad, 0., size)
    n, h, l, d = size[0], size[1], size[2], size[3]
    padded = torch.ops.aten.to_padded_tensor(grad, 0., [n, l, h * d])
    return padded.reshape([n, l, h, d]).transpose(1, 2)
)"},
};

#define WICK_EACH(self, call) "return nested_of([" call " for part in torch.unbind(" self ")])"
#define WICK_UNARY(name) \
  { "nested aten::" name, WICK_EACH("self", "torch." name "(part)") }
#define WICK_PAIRS(call)                  \
  "let a = nested_operand(self, other)\n" \
  "let b = nested_operand(other, self)\n" \
  "return nested_of([" call " for i in range(len(a))])"

constexpr FormulaText kNestedFormulas[] = {
    // Of dense tensors, and back.
    {"aten::_nested_tensor_from_mask", "t: torch.ops.aten.to_padded_tensor(grad, 0., t_size)"},
    {"aten::_nested_tensor_from_tensor_list", "list: torch.unbind(grad)"},
    {"aten::_nested_from_padded",
     "padded: gradient_of_padded(grad, padded_size, fuse_transform_0213)"},
    {"nested aten::_nested_from_padded_and_nested_example",
     "padded: gradient_of_padded(grad, padded_size, False)\nnt_example: None"},
    {"nested aten::to_padded_tensor, nested aten::nested_to_padded_tensor",
     "self: torch.ops.aten._nested_from_padded_and_nested_example(grad, self)"},
    // Views and parts.
    {"nested aten::unbind.int", "self: nested_of(grads)"},
    {"nested aten::select.int", "self: nested_selected(grad, self, index)"},
    {"nested aten::transpose.int", "self: torch.transpose(grad, dim0, dim1)"},
    {"nested aten::reshape, nested aten::view", "self: nested_reshaped(grad, self)"},
    {"nested aten::contiguous, nested aten::clone", "self: grad"},
    {"nested aten::copy_", "self: torch.zeros_like(grad)\nsrc: grad"},
    {"nested aten::sum.dim_IntList", "self: nested_expanded(grad, self)"},
    // Elements.
    WICK_UNARY("relu"),
    WICK_UNARY("tanh"),
    WICK_UNARY("sigmoid"),
    WICK_UNARY("abs"),
    WICK_UNARY("neg"),
    WICK_UNARY("exp"),
    WICK_UNARY("sin"),
    WICK_UNARY("cos"),
    WICK_UNARY("sgn"),
    {"nested aten::silu", WICK_EACH("self", "torch.nn.functional.silu(part)")},
    {"nested aten::gelu",
     WICK_EACH("self", "torch.nn.functional.gelu(part, approximate=approximate)")},
    {"nested aten::dropout", WICK_EACH("input", "torch.dropout(part, p, train)")},
    {"nested aten::to.dtype", WICK_EACH("self", "part.to(dtype)")},
    {"nested aten::add.Scalar", WICK_EACH("self", "torch.add(part, other, alpha=alpha)")},
    {"nested aten::sub.Scalar", WICK_EACH("self", "torch.sub(part, other, alpha=alpha)")},
    {"nested aten::mul.Scalar", WICK_EACH("self", "torch.mul(part, other)")},
    {"nested aten::div.Scalar", WICK_EACH("self", "torch.div(part, other)")},
    {"nested aten::add.Tensor", WICK_PAIRS("torch.add(a[i], b[i], alpha=alpha)")},
    {"nested aten::sub.Tensor", WICK_PAIRS("torch.sub(a[i], b[i], alpha=alpha)")},
    {"nested aten::mul.Tensor", WICK_PAIRS("torch.mul(a[i], b[i])")},
    {"nested aten::div.Tensor", WICK_PAIRS("torch.div(a[i], b[i])")},
    // Layers.
    {"nested aten::linear", WICK_EACH("input", "torch.nn.functional.linear(part, weight, bias)")},
    {"nested aten::bmm",
     "let a, b = nested_factors(self, mat2)\n"
     "return nested_of([torch.mm(a[i], b[i]) for i in range(len(a))])"},
    {"nested aten::matmul",
     "let a, b = nested_factors(self, other)\n"
     "return nested_of([torch.matmul(a[i], b[i]) for i in range(len(a))])"},
    {"nested aten::softmax.int", "return nested_softmax(self, dim, dtype)"},
    {"nested aten::layer_norm",
     WICK_EACH("input", "torch.layer_norm(part, normalized_shape, weight, bias, eps)")},
    {"nested aten::_nested_tensor_layer_norm",
     WICK_EACH("self", "torch.layer_norm(part, [part.size(-1)], weight, bias, eps)")},
    {"nested aten::embedding",
     WICK_EACH("indices",
               "torch.embedding(weight, part, padding_idx, scale_grad_by_freq, sparse)")},
};

const RegisterFormulas kNestedRegistered(kNestedFormulas, kNestedHelpers);

}  // namespace

}  // namespace wick::autograd
