// How tensors are shown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/tensor.h"

namespace wick {

struct PrintOptions {
  int precision = 4;         // digits behind the point
  int64_t threshold = 1000;  // elements from which on a tensor is summarized
  int64_t edge_items = 3;    // of each dimension that is cut, at each end
  int64_t line_width = 80;
  std::optional<bool> scientific;  // nullopt: as the numbers want it
};

// As formatTensor() in core/ivalue.h.
std::string formatTensor(const Tensor& tensor, const PrintOptions& options);

}  // namespace wick
