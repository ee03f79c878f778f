#include "python/open_layout.h"

#include <algorithm>
#include <numeric>

namespace wick::python {

OpenLayout::OpenLayout(IntSpan sizes, IntSpan strides, const capture::InputSizes& input)
    : sizes_(sizes.begin(), sizes.end()), strides_(strides.begin(), strides.end()) {
  for (size_t i = 0; i < sizes.size(); ++i) open_.push_back(input.isOpen(i));
  order_.resize(sizes.size());
  std::iota(order_.begin(), order_.end(), size_t{0});
  std::ranges::stable_sort(order_, [&](size_t a, size_t b) { return strides_[a] > strides_[b]; });
  if (stridesFor(sizes) != strides_) order_.clear();
}

DimVector OpenLayout::stridesFor(IntSpan sizes) const {
  DimVector made = strides_;
  int64_t next = 1;
  for (auto dim = order_.rbegin(); dim != order_.rend(); ++dim) {
    made[*dim] = next;
    next *= std::max<int64_t>(sizes[*dim], 1);
  }
  return made;
}

bool OpenLayout::isOpen() const {
  return std::ranges::find(open_, true) != open_.end();
}

bool OpenLayout::matches(IntSpan sizes, IntSpan strides) const {
  if (sizes.size() != sizes_.size() || strides.size() != strides_.size()) return false;
  for (size_t i = 0; i < sizes_.size(); ++i) {
    if (open_[i] ? sizes[i] < 2 : sizes[i] != sizes_[i]) return false;
  }
  if (!isOpen() || order_.empty()) return std::ranges::equal(strides, strides_);
  return std::ranges::equal(strides, stridesFor(sizes));
}

std::string OpenLayout::text() const {
  std::string all;
  for (size_t i = 0; i < sizes_.size(); ++i) {
    all += i == 0 ? "" : ", ";
    all += open_[i] ? "*" : std::to_string(sizes_[i]);
  }
  return all;
}

Tensor fakeOf(IntSpan sizes, IntSpan strides, DType dtype, Device device,
              const capture::InputSizes& input) {
  if (input.areAllClosed()) return Tensor::emptyStrided(sizes, strides, dtype, device);
  const DimVector examples(input.examples.begin(), input.examples.end());
  const OpenLayout layout(sizes, strides, input);
  return Tensor::emptyStrided(examples, layout.stridesFor(examples), dtype, device);
}

}  // namespace wick::python
