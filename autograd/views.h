// Views on the tape: what is read through a view comes from its base, what is written through one
// goes there.
#pragma once

#include "autograd/tape.h"

namespace wick::autograd {

// Where a tensor's elements lie in memory.
struct Geometry {
  DimVector sizes, strides;
  int64_t offset = 0;
  Geometry() = default;
  explicit Geometry(const Tensor& t) : sizes(t.sizes()), strides(t.strides()), offset(t.offset()) {}
};

// The edge of a view of `base` as it is now. The view may be complex where the base is real, or the
// other way around.
Edge edgeOfView(const Tensor& view, const Tensor& base);

// The node of a base that was written to through a view, which `write` computes; `first` is the
// index in write.next() of what the view was before.
Ref<Node> nodeOfWrite(const Tensor& base, const Tensor& view, Ref<Node> write, size_t first);

// The gradient of a tensor when as_strided took `view` of it: what came from one element several
// times is added up there.
Tensor scatterStrided(const Tensor& gradient, const Geometry& base, const Geometry& view);

}  // namespace wick::autograd
