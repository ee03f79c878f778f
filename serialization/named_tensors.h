// Tensors by name, as containers hold them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/tensor.h"

#pragma GCC visibility push(default)

namespace wick {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

}  // namespace wick

#pragma GCC visibility pop
