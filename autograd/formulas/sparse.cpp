// Sparse tensors. The gradient of a sparse tensor may be dense; where it comes to the values it is
// read at their places.
#include "autograd/formula.h"

namespace wick::autograd {

namespace {

// Of no argument, as in PyTorch.
constexpr const char* kNotImplemented = "results 0";

constexpr HelperText kHelpers[] = {
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

#define WICK_FROM_VALUES "values: at_places(grad, indices)"
#define WICK_DENSE "self: as_dense(grad)"
#define WICK_COMPRESSED "values: values_of_csr(grad, result)"
#define WICK_PLACED "self: torch.sparse_coo_tensor(torch.ops.aten._indices(self), grad, self_size)"

constexpr FormulaText kFormulas[] = {
    {"aten::sparse_coo_tensor.indices", WICK_FROM_VALUES},
    {"aten::sparse_coo_tensor.indices_size", WICK_FROM_VALUES},
    {"aten::_sparse_coo_tensor_unsafe", WICK_FROM_VALUES},
    {"aten::_sparse_coo_tensor_with_dims_and_tensors", WICK_FROM_VALUES},
    {"aten::sparse_csr_tensor.crow_col_value", WICK_COMPRESSED},
    {"aten::sparse_csr_tensor.crow_col_value_size", WICK_COMPRESSED},
    {"aten::_sparse_csr_tensor_unsafe", WICK_COMPRESSED},
    {"aten::sparse_csc_tensor.ccol_row_value", WICK_COMPRESSED},
    {"aten::sparse_csc_tensor.ccol_row_value_size", WICK_COMPRESSED},
    {"aten::_sparse_csc_tensor_unsafe", WICK_COMPRESSED},
    {"aten::sparse_bsr_tensor.crow_col_value", WICK_COMPRESSED},
    {"aten::sparse_bsr_tensor.crow_col_value_size", WICK_COMPRESSED},
    {"aten::_sparse_bsr_tensor_unsafe", WICK_COMPRESSED},
    {"aten::sparse_bsc_tensor.ccol_row_value", WICK_COMPRESSED},
    {"aten::sparse_bsc_tensor.ccol_row_value_size", WICK_COMPRESSED},
    {"aten::_sparse_bsc_tensor_unsafe", WICK_COMPRESSED},
    {"aten::sparse_compressed_tensor.comp_plain_value", WICK_COMPRESSED},
    {"aten::sparse_compressed_tensor.comp_plain_value_size", WICK_COMPRESSED},
    {"aten::_sparse_compressed_tensor_unsafe", WICK_COMPRESSED},
    {"aten::to_sparse", WICK_DENSE},
    {"aten::to_sparse.sparse_dim", WICK_DENSE},
    {"aten::to_sparse_csr", WICK_DENSE},
    {"aten::to_sparse_csc", WICK_DENSE},
    {"aten::to_sparse_bsr", WICK_DENSE},
    {"aten::to_sparse_bsc", WICK_DENSE},
    {"aten::to_dense", "self: torch.ops.aten.to_dense_backward(grad, self, masked_grad)"},
    {"aten::_to_dense", "self: torch.ops.aten.to_dense_backward(grad, self, masked_grad)"},
    {"aten::to_dense_backward", kNotImplemented},
    {"aten::coalesce", "self: grad"},
    {"aten::_coalesce", "self: grad"},
    {"aten::_coalesced", "self: grad"},
    {"aten::_coalesced_", "self: grad"},
    {"aten::values", WICK_PLACED},
    {"aten::values_copy", WICK_PLACED},
    {"aten::_values", "none"},
    {"aten::_values_copy", "none"},
    {"aten::indices", "none"},
    {"aten::indices_copy", "none"},
    {"aten::_indices", "none"},
    {"aten::_indices_copy", "none"},
    {"aten::_sparse_mm", "return torch.mm(sparse, dense)"},
    {"aten::_sparse_addmm", "return torch.addmm(self, mat1, mat2, beta=beta, alpha=alpha)"},
    {"aten::_sparse_sparse_matmul", "return torch.mm(self, other)"},
    {"aten::sparse_sampled_addmm",
     "self: at_entries(grad, self) * beta\n"
     "mat1: torch.mm(at_entries(grad, self), mat2.t()) * alpha\n"
     "mat2: torch.mm(at_entries(grad, self).t(), mat1).t() * alpha"},
    {"aten::sparse_mask", "self: as_dense(at_entries(grad, mask))"},
    {"aten::_sparse_sum", "self: grad.expand(self_size)"},
    {"aten::_sparse_sum.dtype", "self: grad.expand(self_size)"},
    {"aten::_sparse_sum.dim", "self: torch.ops.aten._sparse_sum_backward(grad, self, dim)"},
    {"aten::_sparse_sum.dim_dtype", "self: torch.ops.aten._sparse_sum_backward(grad, self, dim)"},
    {"aten::_sparse_softmax.int",
     "self: torch.ops.aten._sparse_softmax_backward_data(grad, result, dim, self)"},
    {"aten::_sparse_softmax",
     "self: torch.ops.aten._sparse_softmax_backward_data(grad, result, dim, self)"},
    {"aten::_sparse_log_softmax.int",
     "self: torch.ops.aten._sparse_log_softmax_backward_data(grad, result, dim, self)"},
    {"aten::_sparse_log_softmax",
     "self: torch.ops.aten._sparse_log_softmax_backward_data(grad, result, dim, self)"},
    {"aten::_sparse_softmax_backward_data", kNotImplemented},
    {"aten::_sparse_log_softmax_backward_data", kNotImplemented},
    {"aten::_sparse_sum_backward", kNotImplemented},
    {"aten::_sparse_csr_sum.dim_dtype", kNotImplemented},
    {"aten::_sparse_csr_prod.dim_dtype", kNotImplemented},
    {"aten::_sparse_mask_helper", kNotImplemented},
    {"aten::_sparse_broadcast_to", kNotImplemented},
    {"aten::_spdiags", kNotImplemented},
    {"aten::hspmm", kNotImplemented},
    {"aten::smm", kNotImplemented},
    {"aten::sspaddmm", kNotImplemented},
    {"aten::_sparse_broadcast_to_copy", kNotImplemented},
    {"aten::copy_sparse_to_sparse", kNotImplemented},
    {"aten::sparse_resize", kNotImplemented},
    {"aten::sparse_resize_and_clear", kNotImplemented},
    {"aten::resize_as_sparse", kNotImplemented},
    {"aten::copy_sparse_to_sparse_", kNotImplemented},
    {"aten::sparse_resize_", kNotImplemented},
    {"aten::sparse_resize_and_clear_", kNotImplemented},
    {"aten::resize_as_sparse_", kNotImplemented},
};
const RegisterFormulas registered(kFormulas, kHelpers);

}  // namespace

}  // namespace wick::autograd
