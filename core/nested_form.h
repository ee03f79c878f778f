// What a nested tensor consists of: tensors of one dtype and number of dimensions as one, whose
// sizes may differ. A batch of sentences without padding is one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/counted_vector.h"
#include "core/tensor.h"

namespace wick {

// Not to be changed once a tensor has it. Whoever hands a part out gives detach() of it.
class NestedForm final : public RefCounted {
 public:
  CountedVector<Tensor> parts;
  // All elements in order, of one dimension, when the parts lie in it row-major, one behind the
  // other without gaps; else undefined.
  Tensor buffer;
  int64_t part_dim = 0;  // dimensions of each part; 0 also when there are no parts
  bool isPacked() const { return buffer.defined(); }
};

// A nested tensor of these parts, which share their memory with it. RuntimeError when they are not
// dense, or differ in dtype, device or number of dimensions. `dtype` and `part_dim` are those of a
// tensor without parts.
Tensor makeNested(CountedVector<Tensor> parts, DType dtype, int64_t part_dim = 0);
// One whose parts, of these sizes, lie one behind the other in `buffer`, of one dimension and
// contiguous. RuntimeError when its elements are not just as many.
Tensor makePackedNested(const Tensor& buffer, const std::vector<DimVector>& sizes);

// What `t` consists of; RuntimeError that begins with `op` when it is not nested.
const NestedForm& nestedFormOf(std::string_view op, const Tensor& t);

// The size of all parts in a dimension, counted from that of the parts themselves (0); nullopt
// where they differ.
std::optional<int64_t> nestedSize(const Tensor& t, int64_t d);
bool sameNestedSizes(const Tensor& a, const Tensor& b);

// As PyTorch prints one.
std::string formatNested(const Tensor& t, int64_t max_elements);

}  // namespace wick
