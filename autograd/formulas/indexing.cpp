// Gathering, scattering and indexing.
#include "autograd/formula.h"

namespace wick::autograd {

namespace {

constexpr HelperText kIndexingHelpers[] = {
    {"taken_along", R"(
def taken_along(self: Tensor, indices: Tensor, dim: Optional[int]) -> Tensor:
    if dim is None:
        return self.reshape([-1]).gather(0, indices.reshape([-1]))
    d = dim if dim >= 0 else dim + self.dim()
    mine: List[int] = []
    theirs: List[int] = []
    for i in range(self.dim()):
        if i == d:
            mine.append(self.size(i))
            theirs.append(indices.size(i))
        else:
            n = self.size(i) if self.size(i) != 1 else indices.size(i)
            mine.append(n)
            theirs.append(n)
    return self.expand(mine).gather(d, indices.expand(theirs))
)"},
    {"rows_of", R"(
def rows_of(grad: Tensor, dim: int, index: Tensor, size: List[int]) -> Tensor:
    if len(size) > 0:
        return grad.index_select(dim, index).expand(size)
    return grad.index_select(dim, index).reshape(size)
)"},
    {"masked_select_gradient", R"(
def masked_select_gradient(grad: Tensor, size: List[int], mask: Tensor) -> Tensor:
    whole = torch.zeros(size, dtype=grad.dtype, device=grad.device) + torch.zeros(mask.size(), dtype=grad.dtype, device=grad.device)
    return whole.masked_scatter(mask, grad)
)"},
    {"masked_scatter_gradient", R"(
def masked_scatter_gradient(grad: Tensor, mask: Tensor, size: List[int]) -> Tensor:
    taken = grad.masked_select(mask)
    return torch.nn.functional.pad(taken, [0, count_of(size, None) - taken.numel()]).reshape(size)
)"},
    {"scatter_reduce_self", R"(
def scatter_reduce_self(grad: Tensor, self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool, result: Tensor) -> Tensor:
    if reduce == 'sum':
        out = grad
    elif reduce == 'prod':
        masked = self.masked_fill(self == 0, 1)
        out = (grad * masked.scatter_reduce(dim, index, src, reduce, include_self=include_self)) / masked
    elif reduce == 'mean':
        count = torch.ones_like(grad) if include_self else torch.zeros_like(grad)
        count = count.scatter_add(dim, index, torch.ones_like(src))
        out = grad / count.masked_fill(count == 0, 1)
    else:
        mine = (self == result).to(self.dtype)
        theirs = (src == result.gather(dim, index)).to(self.dtype)
        out = mine * (grad / mine.scatter_add(dim, index, theirs))
    if not include_self:
        out = out.scatter(dim, index, 0)
    return out
)"},
    {"scatter_reduce_src", R"(
def scatter_reduce_src(grad: Tensor, self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool, result: Tensor) -> Tensor:
    if reduce == 'sum':
        return grad.gather(dim, index)
    if reduce == 'prod':
        zero = src == 0
        zeros = torch.zeros_like(self).scatter_add(dim, index, zero.to(self.dtype)).gather(dim, index)
        single = zero & (zeros == 1)
        others = self.scatter_reduce(dim, index, src.masked_fill(single, 1), reduce, include_self=include_self)
        return torch.where(single, (grad * others).gather(dim, index), (grad * result).gather(dim, index) / src.masked_fill(zero, 1))
    if reduce == 'mean':
        count = torch.ones_like(grad) if include_self else torch.zeros_like(grad)
        count = count.scatter_add(dim, index, torch.ones_like(src))
        count = count.masked_fill(count == 0, 1)
        return grad.gather(dim, index) / count.gather(dim, index)
    mine = (self == result).to(self.dtype)
    theirs = (src == result.gather(dim, index)).to(self.dtype)
    return theirs * (grad / mine.scatter_add(dim, index, theirs)).gather(dim, index)
)"},
    // The index of whole rows as one of elements.
    {"elementwise_index", R"(
def elementwise_index(index: Tensor, dim: int, like: Tensor) -> Tensor:
    shape = [1] * like.dim()
    if like.dim() > 0:
        shape[dim] = index.numel()
    return index.to(torch.int64).reshape(shape).expand(like.size())
)"},
};

constexpr FormulaText kIndexingFormulas[] = {
    {"aten::gather", R"(
self: torch.zeros(self_size, dtype=grad.dtype, device=grad.device).scatter_add(dim, index, grad)
)"},
    {"aten::take_along_dim", "return taken_along(self, indices, dim)"},
    {"aten::scatter.value", "self: grad.scatter(dim, index, 0)"},
    {"aten::scatter.src", R"(
self: grad.scatter(dim, index, 0)
src: grad.gather(dim, index)
)"},
    {"aten::scatter_add", R"(
self: grad
src: grad.gather(dim, index)
)"},
    {"aten::scatter_reduce.two", R"(
self: scatter_reduce_self(grad, self, dim, index, src, reduce, include_self, result)
src: scatter_reduce_src(grad, self, dim, index, src, reduce, include_self, result)
)"},
    {"aten::index_select", R"(
self: torch.zeros(self_size, dtype=grad.dtype, device=grad.device).index_add(dim, index, grad)
)"},
    {"aten::index_add", R"(
self: grad
source: rows_of(grad, dim, index, source_size) * alpha
)"},
    {"aten::index_copy", R"(
self: grad.index_fill(dim, index, 0)
source: rows_of(grad, dim, index, source_size)
)"},
    {"aten::index_fill.int_Scalar", "self: grad.index_fill(dim, index, 0)"},
    {"aten::index_fill.int_Tensor", R"(
self: grad.index_fill(dim, index, 0)
value: grad.index_select(dim, index).sum()
)"},
    {"aten::index_reduce", R"(
let places = elementwise_index(index, dim, source)
self: scatter_reduce_self(grad, self, dim, places, source, reduce, include_self, result)
source: scatter_reduce_src(grad, self, dim, places, source, reduce, include_self, result)
)"},
    {"aten::take", R"(
self: torch.zeros(self_size, dtype=grad.dtype, device=grad.device).put(index, grad, True)
)"},
    {"aten::put", R"(
self: grad if accumulate else grad.put(index, torch.zeros(source_size, dtype=grad.dtype, device=grad.device), False)
source: grad.take(index).reshape(source_size)
)"},
    {"aten::masked_select", "self: masked_select_gradient(grad, self_size, mask)"},
    {"aten::masked_scatter", R"(
self: grad.masked_fill(mask, 0)
source: masked_scatter_gradient(grad, mask, source_size)
)"},
    {"aten::index.Tensor, aten::index.Tensor_hacked_twin", R"(
self: torch.zeros(self_size, dtype=grad.dtype, device=grad.device).index_put(indices, grad, True)
)"},
    {R"(aten::index_put, aten::index_put.hacked_twin, aten::_index_put_impl, aten::_index_put_impl_)",
     R"(
self: grad if accumulate else grad.index_put(indices, torch.zeros(values_size, dtype=grad.dtype, device=grad.device), False)
values: torch.ops.aten.index(grad, indices)
)"},
    {"aten::fill_diagonal_", R"(
self: grad * (1 - torch.zeros(self_size, dtype=grad.dtype, device=grad.device).fill_diagonal_(1, wrap))
)"},
};
const RegisterFormulas kIndexingRegistered(kIndexingFormulas, kIndexingHelpers);

}  // namespace

}  // namespace wick::autograd
