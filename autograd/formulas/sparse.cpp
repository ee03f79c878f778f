// Sparse tensors. The gradient of a sparse tensor may be dense; where it comes to the values it is
// read at their places.
#include "autograd/formula.h"

namespace wick::autograd {

namespace {

// Of no argument, as in PyTorch.
constexpr const char* kNotImplemented = "results 0";

constexpr HelperText kSparseHelpers[] = {
    {"at_places", R"(
def at_places(grad: Tensor, indices: Tensor) -> Tensor:
    if grad.is_sparse:
        return torch.ops.aten._sparse_mask_helper(grad.coalesce(), indices)
    rows: List[Optional[Tensor]] = []
    for i in range(indices.size(0)):
        rows.append(indices[i])
    return torch.ops.aten.index(grad, rows)
)"},
    {"as_dense", R"(
def as_dense(grad: Tensor) -> Tensor:
    if grad.layout == 0:
        return grad
    return grad.to_dense()
)"},
    {"at_entries", R"(
def at_entries(grad: Tensor, like: Tensor) -> Tensor:
    return torch.ops.aten.sparse_mask(as_dense(grad), like)
)"},
    {"values_of_csr", R"(
def values_of_csr(grad: Tensor, result: Tensor) -> Tensor:
    return torch.ops.aten.sparse_mask(as_dense(grad), result).values()
)"},
};

constexpr FormulaText kSparseFormulas[] = {
    {R"(aten::sparse_coo_tensor.indices, aten::sparse_coo_tensor.indices_size,
         aten::_sparse_coo_tensor_unsafe, aten::_sparse_coo_tensor_with_dims_and_tensors)",
     "values: at_places(grad, indices)"},
    {R"(aten::sparse_csr_tensor.crow_col_value, aten::sparse_csr_tensor.crow_col_value_size,
         aten::_sparse_csr_tensor_unsafe, aten::sparse_csc_tensor.ccol_row_value,
         aten::sparse_csc_tensor.ccol_row_value_size, aten::_sparse_csc_tensor_unsafe,
         aten::sparse_bsr_tensor.crow_col_value, aten::sparse_bsr_tensor.crow_col_value_size,
         aten::_sparse_bsr_tensor_unsafe, aten::sparse_bsc_tensor.ccol_row_value,
         aten::sparse_bsc_tensor.ccol_row_value_size, aten::_sparse_bsc_tensor_unsafe,
         aten::sparse_compressed_tensor.comp_plain_value,
         aten::sparse_compressed_tensor.comp_plain_value_size, aten::_sparse_compressed_tensor_unsafe)",
     "values: values_of_csr(grad, result)"},
    {R"(aten::to_sparse, aten::to_sparse.sparse_dim, aten::to_sparse_csr, aten::to_sparse_csc,
         aten::to_sparse_bsr, aten::to_sparse_bsc)",
     "self: as_dense(grad)"},
    {"aten::to_dense, aten::_to_dense",
     "self: torch.ops.aten.to_dense_backward(grad, self, masked_grad)"},
    {R"(aten::to_dense_backward, aten::_sparse_softmax_backward_data,
         aten::_sparse_log_softmax_backward_data, aten::_sparse_sum_backward,
         aten::_sparse_csr_sum.dim_dtype, aten::_sparse_csr_prod.dim_dtype,
         aten::_sparse_mask_helper, aten::_sparse_broadcast_to, aten::_spdiags, aten::hspmm,
         aten::smm, aten::sspaddmm, aten::_sparse_broadcast_to_copy, aten::copy_sparse_to_sparse,
         aten::sparse_resize, aten::sparse_resize_and_clear, aten::resize_as_sparse,
         aten::copy_sparse_to_sparse_, aten::sparse_resize_, aten::sparse_resize_and_clear_,
         aten::resize_as_sparse_)",
     kNotImplemented},
    {"aten::coalesce, aten::_coalesce, aten::_coalesced, aten::_coalesced_", "self: grad"},
    {"aten::values, aten::values_copy",
     "self: torch.sparse_coo_tensor(torch.ops.aten._indices(self), grad, self_size)"},
    {R"(aten::_values, aten::_values_copy, aten::indices, aten::indices_copy, aten::_indices,
         aten::_indices_copy)",
     "none"},
    {"aten::_sparse_mm", "return torch.mm(sparse, dense)"},
    {"aten::_sparse_addmm", "return torch.addmm(self, mat1, mat2, beta=beta, alpha=alpha)"},
    {"aten::_sparse_sparse_matmul", "return torch.mm(self, other)"},
    {"aten::sparse_sampled_addmm",
     "self: at_entries(grad, self) * beta\n"
     "mat1: torch.mm(at_entries(grad, self), mat2.t()) * alpha\n"
     "mat2: torch.mm(at_entries(grad, self).t(), mat1).t() * alpha"},
    {"aten::sparse_mask", "self: as_dense(at_entries(grad, mask))"},
    {"aten::_sparse_sum, aten::_sparse_sum.dtype", "self: grad.expand(self_size)"},
    {"aten::_sparse_sum.dim, aten::_sparse_sum.dim_dtype",
     "self: torch.ops.aten._sparse_sum_backward(grad, self, dim)"},
    {"aten::_sparse_softmax.int, aten::_sparse_softmax",
     "self: torch.ops.aten._sparse_softmax_backward_data(grad, result, dim, self)"},
    {"aten::_sparse_log_softmax.int, aten::_sparse_log_softmax",
     "self: torch.ops.aten._sparse_log_softmax_backward_data(grad, result, dim, self)"},
};
const RegisterFormulas kSparseRegistered(kSparseFormulas, kSparseHelpers);

}  // namespace

}  // namespace wick::autograd
