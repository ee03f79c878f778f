// Operators that code in C++ calls in more than one place, by name.
#pragma once

#include "runtime/ops/call.h"

namespace wick::ops {

// ---- arithmetic ----

inline const OperatorHandle add{"aten::add", "Tensor"};
inline const OperatorHandle addScalar{"aten::add", "Scalar"};
inline const OperatorHandle addInto{"aten::add_", "Tensor"};
inline const OperatorHandle sub{"aten::sub", "Tensor"};
inline const OperatorHandle mul{"aten::mul", "Tensor"};
inline const OperatorHandle mulScalar{"aten::mul", "Scalar"};
inline const OperatorHandle mulScalarInto{"aten::mul_", "Scalar"};
inline const OperatorHandle div{"aten::div", "Tensor"};
inline const OperatorHandle divScalar{"aten::div", "Scalar"};
inline const OperatorHandle neg{"aten::neg", ""};
inline const OperatorHandle reciprocal{"aten::reciprocal", ""};
inline const OperatorHandle powScalar{"aten::pow", "Tensor_Scalar"};

// ---- functions of elements ----

inline const OperatorHandle abs{"aten::abs", ""};
inline const OperatorHandle sqrt{"aten::sqrt", ""};
inline const OperatorHandle rsqrt{"aten::rsqrt", ""};
inline const OperatorHandle exp{"aten::exp", ""};
inline const OperatorHandle log{"aten::log", ""};
inline const OperatorHandle log1p{"aten::log1p", ""};
inline const OperatorHandle sigmoid{"aten::sigmoid", ""};
inline const OperatorHandle tanh{"aten::tanh", ""};
inline const OperatorHandle relu{"aten::relu", ""};
inline const OperatorHandle leakyRelu{"aten::leaky_relu", ""};
inline const OperatorHandle gelu{"aten::gelu", ""};
inline const OperatorHandle conj{"aten::conj_physical", ""};
inline const OperatorHandle real{"aten::real", ""};
inline const OperatorHandle imag{"aten::imag", ""};
inline const OperatorHandle complex{"aten::complex", ""};
inline const OperatorHandle maximum{"aten::maximum", ""};
inline const OperatorHandle clamp{"aten::clamp", ""};
inline const OperatorHandle clampMin{"aten::clamp_min", ""};
inline const OperatorHandle dropout{"aten::dropout", ""};

// ---- comparisons and booleans ----

inline const OperatorHandle eq{"aten::eq", "Tensor"};
inline const OperatorHandle eqScalar{"aten::eq", "Scalar"};
inline const OperatorHandle ne{"aten::ne", "Tensor"};
inline const OperatorHandle neScalar{"aten::ne", "Scalar"};
inline const OperatorHandle lt{"aten::lt", "Tensor"};
inline const OperatorHandle ltScalar{"aten::lt", "Scalar"};
inline const OperatorHandle gt{"aten::gt", "Tensor"};
inline const OperatorHandle gtScalar{"aten::gt", "Scalar"};
inline const OperatorHandle geScalar{"aten::ge", "Scalar"};
inline const OperatorHandle isNan{"aten::isnan", ""};
inline const OperatorHandle isInf{"aten::isinf", ""};
inline const OperatorHandle isFinite{"aten::isfinite", ""};
inline const OperatorHandle logicalNot{"aten::logical_not", ""};
inline const OperatorHandle logicalAnd{"aten::logical_and", ""};
inline const OperatorHandle logicalOr{"aten::logical_or", ""};
inline const OperatorHandle equal{"aten::equal", ""};
inline const OperatorHandle all{"aten::all", ""};
inline const OperatorHandle allDim{"aten::all", "dim"};
inline const OperatorHandle any{"aten::any", ""};
inline const OperatorHandle anyDim{"aten::any", "dim"};

// ---- along dimensions ----

inline const OperatorHandle sum{"aten::sum", ""};
inline const OperatorHandle sumDims{"aten::sum", "dim_IntList"};
inline const OperatorHandle mean{"aten::mean", ""};
inline const OperatorHandle meanDims{"aten::mean", "dim"};
inline const OperatorHandle var{"aten::var", "correction"};
inline const OperatorHandle prodDim{"aten::prod", "dim_int"};
inline const OperatorHandle amin{"aten::amin", ""};
inline const OperatorHandle amax{"aten::amax", ""};
inline const OperatorHandle min{"aten::min", ""};
inline const OperatorHandle cumsum{"aten::cumsum", ""};
inline const OperatorHandle cumprod{"aten::cumprod", ""};
inline const OperatorHandle softmax{"aten::softmax", "int"};
inline const OperatorHandle logSoftmax{"aten::log_softmax", "int"};
inline const OperatorHandle vectorNorm{"aten::linalg_vector_norm", ""};
inline const OperatorHandle sortStable{"aten::sort", "stable"};
inline const OperatorHandle searchSorted{"aten::searchsorted", "Tensor"};

// ---- selected elements ----

inline const OperatorHandle where{"aten::where", "self"};
inline const OperatorHandle maskedFill{"aten::masked_fill", "Scalar"};
inline const OperatorHandle maskedFillInto{"aten::masked_fill_", "Scalar"};
inline const OperatorHandle maskedSelect{"aten::masked_select", ""};
inline const OperatorHandle index{"aten::index", "Tensor"};
inline const OperatorHandle indexPutInto{"aten::index_put_", ""};
inline const OperatorHandle indexSelect{"aten::index_select", ""};
inline const OperatorHandle nonzero{"aten::nonzero", ""};
inline const OperatorHandle sparseMask{"aten::sparse_mask", ""};

// ---- views and layouts ----

inline const OperatorHandle view{"aten::view", ""};
inline const OperatorHandle reshape{"aten::reshape", ""};
inline const OperatorHandle expand{"aten::expand", ""};
inline const OperatorHandle transpose{"aten::transpose", "int"};
inline const OperatorHandle unsqueeze{"aten::unsqueeze", ""};
inline const OperatorHandle select{"aten::select", "int"};
inline const OperatorHandle slice{"aten::slice", "Tensor"};
inline const OperatorHandle diagonal{"aten::diagonal", ""};
inline const OperatorHandle contiguous{"aten::contiguous", ""};
inline const OperatorHandle viewAsReal{"aten::view_as_real", ""};
inline const OperatorHandle viewAsComplex{"aten::view_as_complex", ""};

// ---- copies, joined and new tensors ----

inline const OperatorHandle clone{"aten::clone", ""};
inline const OperatorHandle copyInto{"aten::copy_", ""};
inline const OperatorHandle toDType{"aten::to", "dtype"};
inline const OperatorHandle toDevice{"aten::to", "device"};
inline const OperatorHandle cat{"aten::cat", ""};
inline const OperatorHandle stack{"aten::stack", ""};
inline const OperatorHandle flip{"aten::flip", ""};
inline const OperatorHandle constantPad{"aten::constant_pad_nd", ""};
inline const OperatorHandle pad{"aten::pad", ""};
inline const OperatorHandle tril{"aten::tril", ""};
inline const OperatorHandle triu{"aten::triu", ""};
inline const OperatorHandle combinations{"aten::combinations", ""};
inline const OperatorHandle arange{"aten::arange", ""};
inline const OperatorHandle arangeFrom{"aten::arange", "start"};
inline const OperatorHandle eye{"aten::eye", ""};

// ---- random numbers ----

inline const OperatorHandle bernoulli{"aten::bernoulli", "p"};
inline const OperatorHandle normalInto{"aten::normal_", ""};
inline const OperatorHandle uniformInto{"aten::uniform_", ""};

// ---- products and layers ----

inline const OperatorHandle matmul{"aten::matmul", ""};
inline const OperatorHandle bmm{"aten::bmm", ""};
inline const OperatorHandle nativeBatchNorm{"aten::native_batch_norm", ""};
inline const OperatorHandle groupNorm{"aten::group_norm", ""};
inline const OperatorHandle layerNorm{"aten::layer_norm", ""};
inline const OperatorHandle nllLoss{"aten::nll_loss_nd", ""};

}  // namespace wick::ops
