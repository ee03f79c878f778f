// What branches, loops and exits hand on. Each variable that one of them sets is a value of its own
// at each level around it, so n levels that set n variables need n * n values. So do n `continue`
// of a loop with a condition of n nodes.
#pragma once

#include "ir/graph.h"

namespace wick {

class CarriedValues {
 public:
  // `nodes` is how many the function has without those that are made for such values.
  void add(size_t count, size_t nodes, const SourceRange& range);

 private:
  size_t count_ = 0;
};

}  // namespace wick
