// How a tensor lies in its storage.
#pragma once

#include <algorithm>

#include "core/tensor.h"

namespace wick::lazy {

struct Geometry {
  DType dtype = DType::Float;
  DimVector sizes, strides;
  int64_t offset = 0;

  static Geometry of(const Tensor& t) {
    return {t.dtype(), DimVector(t.sizes()), DimVector(t.strides()), t.offset()};
  }
  // Whether the tensor lies like this, strides of single elements included.
  bool isThatOf(const Tensor& t) const {
    return t.dtype() == dtype && t.offset() == offset && std::ranges::equal(t.sizes(), sizes) &&
           std::ranges::equal(t.strides(), strides);
  }
  int64_t numel() const {
    int64_t n = 1;
    for (const int64_t s : sizes) n *= s;
    return n;
  }
  // Elements from the storage's beginning to behind the last one.
  int64_t end() const {
    int64_t last = offset;
    for (size_t d = 0; d < sizes.size(); ++d) last += (sizes[d] - 1) * strides[d];
    return numel() == 0 ? offset : last + 1;
  }
  // Of a copy in memory of its own, which is dense.
  Geometry ofCopy() const;
  bool isContiguous() const;
  // Whether the elements fill the storage's first bytes without gaps, each once.
  bool isDense() const;
  // Whether two elements may be one place; true also where only a longer look could tell.
  bool mayOverlap() const;
  friend bool operator==(const Geometry& a, const Geometry& b) {
    return a.dtype == b.dtype && a.offset == b.offset && a.sizes == b.sizes &&
           (a.strides == b.strides || a.sameStrides(b));
  }

 private:
  // Of dimensions of one element no stride matters.
  bool sameStrides(const Geometry& other) const;
};

}  // namespace wick::lazy
