// The parts of `torchscript-cli bisect` that know nothing of processes.
#pragma once

#include <cstdint>
#include <functional>

namespace wick::cli {

// The smallest n in 1..last for which `right(n)` is false, given that right(0) holds and
// right(last) does not; asks about log2(last) times.
uint64_t firstWrong(uint64_t last, const std::function<bool(uint64_t)>& right);

}  // namespace wick::cli
