#include "codegen/loop/lane_order.h"

namespace wick::loop {

// More registers for short expressions, whose instructions wait for each other. Longer ones gain
// from four registers too (0.8 to 0.9 of the time), but they also take half as long again to
// compile: only those do that go over memory once.
unsigned registersPerVector(const Kernel& kernel) {
  // Places and addresses take twice as much.
  for (const Leaf& leaf : kernel.leaves) {
    if (leaf.kind == Leaf::Kind::Index || leaf.offset.valid()) return 1;
  }
  size_t nodes = kernel.expression.nodes().size();
  const size_t many = kernel.reductions.empty() ? 128 : 24;
  return nodes < many ? 4 : nodes < 160 ? 2 : 1;
}

unsigned lanesOf(const Kernel& kernel, unsigned vector_bits) {
  return vector_bits / 32 * registersPerVector(kernel);
}

// An addition waits for the one before, and the processor has nothing else to do meanwhile.
unsigned chainsOf(const Kernel& kernel, const Schedule& schedule, int pass, size_t reductions) {
  constexpr int kFewNodes = 24;
  constexpr unsigned kRegisters = 8;  // for all accumulators
  if (reductions == 0) return 1;
  int computed = 0;
  for (size_t i = 0; i < kernel.expression.nodes().size(); ++i) {
    computed += schedule.varies[i] && schedule.pass_of_node[i] == pass;
  }
  if (computed > kFewNodes) return 1;
  unsigned chains = kMaxChains;
  while (chains > 1 && chains * reductions * registersPerVector(kernel) > kRegisters) {
    chains /= 2;
  }
  return chains;
}

}  // namespace wick::loop
