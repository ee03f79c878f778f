#include "runtime/ops/nested/nested.h"

#include <algorithm>

#include "core/budget.h"
#include "core/error.h"

namespace wick::ops::nested {

std::vector<DimVector> sizesOfParts(const NestedForm& form) {
  std::vector<DimVector> sizes;
  checkAllocation("nested tensor", form.parts.size() * sizeof(DimVector));
  sizes.reserve(form.parts.size());
  for (const Tensor& part : form.parts) sizes.emplace_back(part.sizes());
  return sizes;
}

Tensor packed(std::string_view op, const Tensor& t) {
  const NestedForm& form = nestedFormOf(op, t);
  if (form.isPacked()) return t;
  Tensor buffer = Tensor::empty(DimVector{t.numel()}, t.dtype());
  const Tensor result = makePackedNested(buffer, sizesOfParts(form));
  const NestedForm& made = nestedFormOf(op, result);
  for (size_t i = 0; i < form.parts.size(); ++i) made.parts[i].copyFrom(form.parts[i]);
  return result;
}

Tensor mapParts(std::string_view op, const Tensor& t,
                const std::function<Tensor(const Tensor&)>& f) {
  const NestedForm& form = nestedFormOf(op, t);
  CountedVector<Tensor> parts;
  Pace pace;
  for (const Tensor& part : form.parts) {
    pace.step();
    parts.push_back(f(part));
  }
  return makeNested(std::move(parts), t.dtype(), form.part_dim);
}

Tensor rowsOf(std::string_view op, const Tensor& packed) {
  const NestedForm& form = nestedFormOf(op, packed);
  WICK_CHECK(form.part_dim == 2 && form.isPacked(), "{}: expected a nested tensor of matrices", op);
  const std::optional<int64_t> width = nestedSize(packed, 1);
  WICK_CHECK(width, "{}: expected a nested tensor of matrices of one width", op);
  int64_t rows = 0;
  for (const Tensor& part : form.parts) rows += part.size(0);
  return form.buffer.view(DimVector{rows, *width});
}

Tensor fromRows(const Tensor& rows, const NestedForm& like) {
  std::vector<DimVector> sizes;
  for (const Tensor& part : like.parts) sizes.push_back(DimVector{part.size(0), rows.size(1)});
  return makePackedNested(rows.contiguous().view(DimVector{rows.numel()}), sizes);
}

}  // namespace wick::ops::nested
