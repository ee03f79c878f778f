// Arithmetic, copies and views.
#include "autograd/formula.h"

namespace wick::autograd {

namespace {

constexpr HelperText kCoreHelpers[] = {
    // A reduced tensor with the dimensions that were reduced, of size one.
    {"with_reduced", R"(
def with_reduced(t: Tensor, size: List[int], dim: Optional[List[int]], keepdim: bool) -> Tensor:
    if keepdim or len(size) == 0:
        return t
    if dim is None or len(dim) == 0:
        return t.reshape([1] * len(size))
    shape = [s for s in size]
    for d in dim:
        shape[d] = 1
    return t.reshape(shape)
)"},
    // A sum's gradient is spread over what was summed.
    {"spread", R"(
def spread(grad: Tensor, size: List[int], dim: Optional[List[int]], keepdim: bool) -> Tensor:
    if len(size) == 0:
        return grad
    return with_reduced(grad, size, dim, keepdim).expand(size)
)"},
    {"count_of", R"(
def count_of(size: List[int], dim: Optional[List[int]]) -> int:
    count = 1
    if dim is None or len(dim) == 0:
        for s in size:
            count *= s
    else:
        for d in dim:
            if len(size) > 0:
                count *= size[d]
    return count
)"},
    // Times the conjugate of a number.
    {"scaled", R"(
def scaled(grad: Tensor, factor: number) -> Tensor:
    return (grad.conj() * factor).conj() if grad.is_complex() else grad * factor
)"},
    {"transposed_adjoint", R"(
def transposed_adjoint(t: Tensor) -> Tensor:
    return t.transpose(-2, -1).conj()
)"},
    {"unpermuted", R"(
def unpermuted(grad: Tensor, dims: List[int]) -> Tensor:
    n = len(dims)
    inverse = [0] * n
    for i in range(n):
        inverse[dims[i] if dims[i] >= 0 else dims[i] + n] = i
    return grad.permute(inverse)
)"},
};

constexpr FormulaText kCoreFormulas[] = {
    {"aten::add.Tensor", "self: grad\nother: scaled(grad, alpha)"},
    {R"(aten::add.Scalar, aten::sub.Scalar, aten::positive, aten::clone, aten::contiguous,
         aten::alias, aten::to.dtype, aten::to.device, aten::to.dtype_layout, aten::_to_copy,
         aten::expand)",
     "self: grad"},
    {"aten::sub.Tensor", "self: grad\nother: -scaled(grad, alpha)"},
    {"aten::rsub.Tensor", "self: -scaled(grad, alpha)\nother: grad"},
    {"aten::rsub.Scalar", "self: -scaled(grad, alpha)"},
    {"aten::mul.Tensor", "self: grad * other.conj()\nother: grad * self.conj()"},
    {"aten::mul.Scalar", "self: scaled(grad, other)"},
    {"aten::div.Tensor",
     "self: grad / other.conj()\n"
     "other: -grad * ((self / other) / other).conj()"},
    {"aten::div.Scalar", "self: (grad.conj() / other).conj()"},
    {"aten::neg", "self: -grad"},
    {"aten::exp", "self: grad * result.conj()"},
    {"aten::log", "self: grad / self.conj()"},
    {"aten::sin", "self: grad * self.cos().conj()"},
    {"aten::cos", "self: grad * -self.sin().conj()"},
    {"aten::tanh", "self: grad * (1 - result * result).conj()"},
    {"aten::sigmoid", "self: grad * ((1 - result) * result).conj()"},
    {"aten::relu", "self: torch.where(result <= 0, 0.0, grad)"},
    {"aten::sqrt", "self: grad / (2 * result.conj())"},
    {"aten::sum", "self: spread(grad, self_size, None, False)"},
    {"aten::sum.dim_IntList", "self: spread(grad, self_size, dim, keepdim)"},
    {"aten::mean", "self: spread(grad, self_size, None, False) / count_of(self_size, None)"},
    {"aten::mean.dim", "self: spread(grad, self_size, dim, keepdim) / count_of(self_size, dim)"},
    {"aten::mm, wick::mm_weight",
     "self: torch.mm(grad, mat2.t().conj())\nmat2: torch.mm(self.t().conj(), grad)"},
    {"aten::bmm",
     "self: torch.bmm(grad, transposed_adjoint(mat2))\n"
     "mat2: torch.bmm(transposed_adjoint(self), grad)"},
    {"aten::mv", "self: torch.outer(grad, vec.conj())\nvec: torch.mv(self.t().conj(), grad)"},
    {"aten::dot", "self: grad * tensor.conj()\ntensor: grad * self.conj()"},
    {"aten::addmm",
     "self: scaled(grad, beta)\n"
     "mat1: scaled(torch.mm(grad, mat2.t().conj()), alpha)\n"
     "mat2: scaled(torch.mm(mat1.t().conj(), grad), alpha)"},

    {"aten::to.other, aten::type_as", "self: grad\nother: None"},
    // Of the other tensor only the shape is taken, so that the result does not depend on it.
    {"aten::expand_as", "return self.expand(other.size())"},
    {"aten::reshape_as", "return self.reshape(other.size())"},
    {"aten::view_as", "return self.view(other.size())"},
    {"aten::copy_", "self: torch.zeros_like(grad)\nsrc: grad"},
    {"aten::copy_.Tensor", "self: torch.zeros_like(grad)\nother: grad"},
    {"aten::fill_.Scalar, aten::zero_", "self: torch.zeros_like(grad)"},
    {"aten::fill_.Tensor", "self: torch.zeros_like(grad)\nvalue: grad.sum()"},

    {R"(aten::view, aten::reshape, aten::_unsafe_view, aten::flatten.using_ints,
         aten::unflatten.int, aten::squeeze, aten::squeeze.dim, aten::squeeze.dims, aten::unsqueeze)",
     "self: grad.reshape(self_size)"},
    {"aten::t", "self: grad.t()"},
    {"aten::numpy_T",
     "self: grad.permute([len(self_size) - 1 - i for i in range(len(self_size))])"},
    {"aten::transpose.int", "self: grad.transpose(dim0, dim1)"},
    {"aten::permute", "self: unpermuted(grad, dims)"},
    {"aten::select.int", "self: torch.select_backward(grad, self_size, dim, index)"},
    {"aten::slice.Tensor",
     "self: torch.slice_backward(grad, self_size, dim, 0 if start is None else start, "
     "9223372036854775807 if end is None else end, step)"},
    {"aten::diagonal", "self: torch.diagonal_backward(grad, self_size, offset, dim1, dim2)"},
    {"aten::narrow", "self: torch.slice_backward(grad, self_size, dim, start, start + length, 1)"},
    {"aten::as_strided",
     "self: torch.as_strided_backward(grad, self_size, self_stride, self_offset, size, stride, "
     "self_offset if storage_offset is None else storage_offset)"},
    {"aten::select_backward", "grad_output: grad.select(dim, index)"},
    {"aten::slice_backward", "grad_output: torch.slice(grad, dim, start, end, step)"},
    {"aten::diagonal_backward", "grad_output: grad.diagonal(offset, dim1, dim2)"},
    {"aten::as_strided_backward",
     "grad_output: torch.as_strided(grad, size, stride, offset - base_offset)"},
};

const RegisterFormulas kCoreRegistered(kCoreFormulas, kCoreHelpers);

}  // namespace

}  // namespace wick::autograd
