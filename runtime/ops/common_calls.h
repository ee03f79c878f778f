// The operators of other families that composed kernels use, by name.
#pragma once

#include "runtime/ops/call.h"

namespace wick::ops {

inline const OperatorHandle add{"aten::add", "Tensor"};
inline const OperatorHandle addScalar{"aten::add", "Scalar"};
inline const OperatorHandle sub{"aten::sub", "Tensor"};
inline const OperatorHandle mul{"aten::mul", "Tensor"};
inline const OperatorHandle mulScalar{"aten::mul", "Scalar"};
inline const OperatorHandle div{"aten::div", "Tensor"};
inline const OperatorHandle divScalar{"aten::div", "Scalar"};
inline const OperatorHandle neg{"aten::neg", ""};
inline const OperatorHandle abs{"aten::abs", ""};
inline const OperatorHandle sqrt{"aten::sqrt", ""};
inline const OperatorHandle exp{"aten::exp", ""};
inline const OperatorHandle log{"aten::log", ""};
inline const OperatorHandle log1p{"aten::log1p", ""};
inline const OperatorHandle sigmoid{"aten::sigmoid", ""};
inline const OperatorHandle tanh{"aten::tanh", ""};
inline const OperatorHandle relu{"aten::relu", ""};
inline const OperatorHandle gelu{"aten::gelu", ""};
inline const OperatorHandle conj{"aten::conj_physical", ""};
inline const OperatorHandle maximum{"aten::maximum", ""};
inline const OperatorHandle clampMin{"aten::clamp_min", ""};
inline const OperatorHandle powScalar{"aten::pow", "Tensor_Scalar"};
inline const OperatorHandle where{"aten::where", "self"};
inline const OperatorHandle cat{"aten::cat", ""};
inline const OperatorHandle stack{"aten::stack", ""};
inline const OperatorHandle sum{"aten::sum", ""};
inline const OperatorHandle sumDims{"aten::sum", "dim_IntList"};
inline const OperatorHandle mean{"aten::mean", ""};
inline const OperatorHandle maskedFill{"aten::masked_fill", "Scalar"};
inline const OperatorHandle softmax{"aten::softmax", "int"};
inline const OperatorHandle diagonal{"aten::diagonal", ""};

}  // namespace wick::ops
