#include "codegen/loop/emission.h"

#include <bit>

#include "codegen/loop/reduce_op.h"
#include "core/dtype_dispatch.h"

namespace wick::loop {

std::vector<ScalarExpr> PassWork::roots(const Kernel& kernel) const {
  std::vector<ScalarExpr> all = checks;
  for (const Store* store : stores) all.push_back(store->value);
  for (const size_t r : reductions) all.push_back(kernel.reductions[r].operand);
  return all;
}

PassWork workOf(const Kernel& kernel, const Schedule& schedule, int pass) {
  PassWork work;
  for (size_t r = 0; r < kernel.reductions.size(); ++r) {
    if (schedule.pass_of_reduction[r] == pass) work.reductions.push_back(r);
  }
  for (const Store& store : kernel.stores) {
    if (!store.per_row && schedule.passOf(store.value) == pass) work.stores.push_back(&store);
  }
  for (const ScalarExpr check : kernel.checks) {
    if (schedule.passOf(check) == pass) work.checks.push_back(check);
  }
  return work;
}

std::vector<bool> neededFor(const Kernel& kernel, std::span<const ScalarExpr> roots,
                            const Schedule* schedule, int pass) {
  std::vector<bool> needed(kernel.expression.nodes().size());
  for (const ScalarExpr root : roots) needed[static_cast<size_t>(root.id)] = true;
  for (auto i = static_cast<int32_t>(needed.size()); i-- > 0;) {
    if (!needed[static_cast<size_t>(i)] || (schedule && schedule->waitingFor({i}, pass))) continue;
    std::array<ScalarExpr, 3> operands;
    const size_t n = kernel.operandsOf({i}, operands);
    for (size_t k = 0; k < n; ++k) needed[static_cast<size_t>(operands[k].id)] = true;
  }
  return needed;
}

ScalarNode identityNode(ReduceOp op, DType type) {
  ScalarNode node;
  node.type = type;
  dispatch<kIntegers | kBool | kFloats>("reduction", type, [&]<class T>() {
    const T value = identityOf<T>(op);
    node.payload = isFloating(type) ? std::bit_cast<uint64_t>(static_cast<double>(value))
                                    : static_cast<uint64_t>(static_cast<int64_t>(value));
  });
  return node;
}

}  // namespace wick::loop
