// What those who write code for kernels have in common: machine code, C++, CUDA C, kernels that are split.
#pragma once

#include <map>
#include <span>

#include "codegen/loop/kernel.h"

namespace wick::loop {

// What one pass computes at each point.
struct PassWork {
  std::vector<size_t> reductions;
  std::vector<const Store*> stores;
  std::vector<ScalarExpr> checks;

  bool empty() const { return reductions.empty() && stores.empty() && checks.empty(); }
  // What it is computed from.
  std::vector<ScalarExpr> roots(const Kernel& kernel) const;
};

PassWork workOf(const Kernel& kernel, const Schedule& schedule, int pass);

// By node: whether it is one of these, or one that they are computed from. With a schedule, nothing
// counts that is needed only for what waits for the pass.
std::vector<bool> neededFor(const Kernel& kernel, std::span<const ScalarExpr> roots,
                            const Schedule* schedule = nullptr, int pass = 0);

// The constant that a reduction in `type` starts from.
ScalarNode identityNode(ReduceOp op, DType type);

// Adds the value of node `e` to `values`, and before it those that it is computed from: operands first,
// and without recursion, because expressions may be deep. `known(node)` may add a value that need not
// be computed, and says whether it did; `make(node, operands)` adds one that is computed.
template <class V, class Known, class Make>
void addValue(std::map<int32_t, V>& values, const Kernel& kernel, ScalarExpr e, Known&& known,
              Make&& make) {
  std::vector<ScalarExpr> stack{e};
  while (!stack.empty()) {
    const ScalarExpr top = stack.back();
    if (values.count(top.id) != 0 || known(top)) {
      stack.pop_back();
      continue;
    }
    std::array<ScalarExpr, 3> operands;
    const size_t n = kernel.operandsOf(top, operands), height = stack.size();
    for (size_t k = 0; k < n; ++k) {
      if (values.count(operands[k].id) == 0) stack.push_back(operands[k]);
    }
    if (stack.size() > height) continue;
    stack.pop_back();
    make(top, std::span<const ScalarExpr>(operands.data(), n));
  }
}

}  // namespace wick::loop
