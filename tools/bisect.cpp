#include "tools/bisect.h"

namespace wick::cli {

uint64_t firstWrong(uint64_t last, const std::function<bool(uint64_t)>& right) {
  uint64_t good = 0;
  uint64_t bad = last;
  while (bad - good > 1) {
    const uint64_t middle = good + (bad - good) / 2;
    (right(middle) ? good : bad) = middle;
  }
  return bad;
}

}  // namespace wick::cli
