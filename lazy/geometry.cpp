#include "lazy/geometry.h"

#include <algorithm>
#include <numeric>

namespace wick::lazy {

bool Geometry::sameStrides(const Geometry& other) const {
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] > 1 && strides[d] != other.strides[d]) return false;
  }
  return true;
}

Geometry Geometry::ofCopy() const {
  Geometry made = *this;
  made.offset = 0;
  if (!made.isDense()) made.strides = denseStrides(sizes, strides);
  return made;
}

bool Geometry::isContiguous() const {
  int64_t next = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] > 1 && strides[d] != next) return false;
    next *= std::max<int64_t>(sizes[d], 1);
  }
  return true;
}

bool Geometry::isDense() const {
  if (offset != 0) return false;
  if (isContiguous()) return true;
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t d) { return strides[d]; });
  int64_t next = 1;
  for (const size_t d : order) {
    if (sizes[d] <= 1) continue;
    if (strides[d] != next) return false;
    next *= sizes[d];
  }
  return true;
}

bool Geometry::mayOverlap() const {
  if (isContiguous()) return false;
  std::vector<size_t> order;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] > 1) order.push_back(d);
  }
  std::ranges::sort(order, {}, [&](size_t d) { return strides[d]; });
  int64_t inner = 0;  // from the first to the last element of the dimensions so far
  for (const size_t d : order) {
    if (strides[d] <= inner) return true;
    inner += (sizes[d] - 1) * strides[d];
  }
  return false;
}

}  // namespace wick::lazy
