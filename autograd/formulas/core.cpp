// Arithmetic, copies and views.
#include "autograd/formula.h"

namespace wick::autograd {

namespace {

constexpr HelperText kHelpers[] = {
    // A sum's gradient is spread over what was summed.
    {"spread", R"(
def spread(grad: Tensor, size: List[int], dim: Optional[List[int]], keepdim: bool) -> Tensor:
    n = len(size)
    if n == 0:
        return grad
    if dim is None or len(dim) == 0:
        if keepdim:
            return grad.expand(size)
        return grad.reshape([1] * n).expand(size)
    if not keepdim:
        shape = [s for s in size]
        for d in dim:
            shape[d if d >= 0 else d + n] = 1
        return grad.reshape(shape).expand(size)
    return grad.expand(size)
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
    // Puts back the dimensions that squeeze took.
    {"unsqueeze_all", R"(
def unsqueeze_all(grad: Tensor, size: List[int]) -> Tensor:
    return grad.reshape(size)
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
};

constexpr FormulaText kFormulas[] = {
    {"aten::add.Tensor", "self: grad\nother: scaled(grad, alpha)"},
    {"aten::add.Scalar", "self: grad"},
    {"aten::sub.Tensor", "self: grad\nother: -scaled(grad, alpha)"},
    {"aten::sub.Scalar", "self: grad"},
    {"aten::rsub.Tensor", "self: -scaled(grad, alpha)\nother: grad"},
    {"aten::rsub.Scalar", "self: -scaled(grad, alpha)"},
    {"aten::mul.Tensor", "self: grad * other.conj()\nother: grad * self.conj()"},
    {"aten::mul.Scalar", "self: scaled(grad, other)"},
    {"aten::div.Tensor", "self: grad / other.conj()\n"
                         "other: -grad * ((self / other) / other).conj()"},
    {"aten::div.Scalar", "self: (grad.conj() / other).conj()"},
    {"aten::neg", "self: -grad"},
    {"aten::positive", "self: grad"},
    {"aten::exp", "self: grad * result.conj()"},
    {"aten::log", "self: grad / self.conj()"},
    {"aten::sin", "self: grad * self.cos().conj()"},
    {"aten::cos", "self: grad * -self.sin().conj()"},
    {"aten::tanh", "self: grad * (1 - result * result).conj()"},
    {"aten::sigmoid", "self: grad * ((1 - result) * result).conj()"},
    {"aten::relu", "self: torch.where(result > 0, grad, 0)"},
    {"aten::sqrt", "self: grad / (2 * result.conj())"},
    {"aten::sum", "self: spread(grad, self_size, None, False)"},
    {"aten::sum.dim_IntList", "self: spread(grad, self_size, dim, keepdim)"},
    {"aten::mean", "self: spread(grad, self_size, None, False) / count_of(self_size, None)"},
    {"aten::mean.dim",
     "self: spread(grad, self_size, dim, keepdim) / count_of(self_size, dim)"},
    {"aten::mm", "self: torch.mm(grad, mat2.t().conj())\nmat2: torch.mm(self.t().conj(), grad)"},
    {"aten::bmm", "self: torch.bmm(grad, transposed_adjoint(mat2))\n"
                  "mat2: torch.bmm(transposed_adjoint(self), grad)"},
    {"aten::mv", "self: torch.outer(grad, vec.conj())\nvec: torch.mv(self.t().conj(), grad)"},
    {"aten::dot", "self: grad * tensor.conj()\ntensor: grad * self.conj()"},
    {"aten::addmm", "self: scaled(grad, beta)\n"
                    "mat1: scaled(torch.mm(grad, mat2.t().conj()), alpha)\n"
                    "mat2: scaled(torch.mm(mat1.t().conj(), grad), alpha)"},

    {"aten::clone", "self: grad"},
    {"aten::contiguous", "self: grad"},
    {"aten::alias", "self: grad"},
    {"aten::to.dtype", "self: grad"},
    {"aten::to.device", "self: grad"},
    {"aten::to.other", "self: grad\nother: None"},
    {"aten::to.dtype_layout", "self: grad"},
    {"aten::_to_copy", "self: grad"},
    {"aten::type_as", "self: grad\nother: None"},
    {"aten::copy_", "self: None\nsrc: grad"},
    {"aten::copy_.Tensor", "self: None\nother: grad"},
    {"aten::fill_.Scalar", "self: None"},
    {"aten::fill_.Tensor", "self: None\nvalue: grad.sum()"},
    {"aten::zero_", "self: None"},

    {"aten::view", "self: grad.reshape(self_size)"},
    {"aten::reshape", "self: grad.reshape(self_size)"},
    {"aten::_unsafe_view", "self: grad.reshape(self_size)"},
    {"aten::flatten.using_ints", "self: grad.reshape(self_size)"},
    {"aten::unflatten.int", "self: grad.reshape(self_size)"},
    {"aten::squeeze", "self: grad.reshape(self_size)"},
    {"aten::squeeze.dim", "self: grad.reshape(self_size)"},
    {"aten::squeeze.dims", "self: grad.reshape(self_size)"},
    {"aten::unsqueeze", "self: grad.reshape(self_size)"},
    {"aten::view_as", "self: grad.reshape(self_size)\nother: None"},
    {"aten::reshape_as", "self: grad.reshape(self_size)\nother: None"},
    {"aten::expand", "self: grad"},
    {"aten::expand_as", "self: grad\nother: None"},
    {"aten::t", "self: grad.t()"},
    {"aten::numpy_T", "self: grad.permute([len(self_size) - 1 - i for i in range(len(self_size))])"},
    {"aten::transpose.int", "self: grad.transpose(dim0, dim1)"},
    {"aten::permute", "self: unpermuted(grad, dims)"},
    {"aten::select.int", "self: torch.select_backward(grad, self_size, dim, index)"},
    {"aten::slice.Tensor",
     "self: torch.slice_backward(grad, self_size, dim, 0 if start is None else start, "
     "9223372036854775807 if end is None else end, step)"},
    {"aten::diagonal", "self: torch.diagonal_backward(grad, self_size, offset, dim1, dim2)"},
    {"aten::narrow",
     "self: torch.slice_backward(grad, self_size, dim, start, start + length, 1)"},
    {"aten::as_strided",
     "self: torch.as_strided_backward(grad, self_size, self_stride, self_offset, size, stride, "
     "self_offset if storage_offset is None else storage_offset)"},
    {"aten::select_backward", "grad_output: grad.select(dim, index)"},
    {"aten::slice_backward",
     "grad_output: torch.slice(grad, dim, start, end, step)"},
    {"aten::diagonal_backward", "grad_output: grad.diagonal(offset, dim1, dim2)"},
    {"aten::as_strided_backward", "grad_output: torch.as_strided(grad, size, stride, offset - base_offset)"},
};

constexpr HelperText kMoreHelpers[] = {
    {"unpermuted", R"(
def unpermuted(grad: Tensor, dims: List[int]) -> Tensor:
    n = len(dims)
    inverse = [0] * n
    for i in range(n):
        inverse[dims[i] if dims[i] >= 0 else dims[i] + n] = i
    return grad.permute(inverse)
)"},
};
const RegisterFormulas registered(kFormulas, kHelpers);
const RegisterFormulas more({}, kMoreHelpers);

}  // namespace

}  // namespace wick::autograd
