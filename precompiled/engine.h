// What nearly every file above ir/ includes anyway, parsed once for all of them when Bazel runs with
// --config=precompiled. No file may count on it: each includes what it needs.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "core/ivalue.h"
#include "core/tensor.h"
#include "ir/graph.h"
#include "ir/operator.h"
