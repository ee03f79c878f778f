// Headers that nearly every file above ir/ includes anyway, parsed once for all of them. No file may count on
// it: each includes the headers that it needs.
//
// GCC instantiates in every file anew the templates that a precompiled header's inline functions call, so less
// is quicker. Nobody here calls the special functions of the standard library (std::cyl_bessel_j), which
// alone took a tenth of a second for each file.
//
// GCC picks a precompiled form by the macros that the header mentions (tools/options.bzl).
#ifdef WICK_OPTIMIZED
#endif

#include <bits/c++config.h>
#undef _GLIBCXX_USE_STD_SPEC_FUNCS

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
