// What kernels for nested tensors (core/nested_form.h) share.
#pragma once

#include <functional>
#include <string>

#include "core/nested_form.h"
#include "ir/kind_kernels.h"
#include "runtime/ops/call.h"

namespace wick::ops::nested {

inline bool isNested(const Tensor& t) {
  return t.defined() && t.kind() == TensorKind::Nested;
}

// The sizes of the parts.
std::vector<DimVector> sizesOfParts(const NestedForm& form);
// The same with a buffer: `t` itself when it has one.
Tensor packed(std::string_view op, const Tensor& t);
// A nested tensor of the same parts, each made by `f`.
Tensor mapParts(std::string_view op, const Tensor& t,
                const std::function<Tensor(const Tensor&)>& f);

// A packed nested tensor of parts [L_i, E] as one matrix [sum of L_i, E], which shares its memory.
// RuntimeError that begins with `op` unless the parts are matrices of one width.
Tensor rowsOf(std::string_view op, const Tensor& packed);
// The other way: rows for each part, as many as it had, of any width.
Tensor fromRows(const Tensor& rows, const NestedForm& like);

}  // namespace wick::ops::nested
