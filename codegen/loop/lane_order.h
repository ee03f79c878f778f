// In which order code for the CPU adds. Sums of floats depend on it, so whoever writes such code
// (codegen/llvm, codegen/cpp) asks here.
//
// A row is added by lanes: element i goes to lane i % lanes. Passes that compute little have several
// accumulators a lane, which take whole vectors in turn; these are added at the end, and then the
// upper half of the lanes to the lower one until a single lane is left.
#pragma once

#include "codegen/loop/kernel.h"

namespace wick::loop {

// The most accumulators that a reduction has in a lane.
inline constexpr unsigned kMaxChains = 4;

// Vector registers that one vector of float32 takes.
unsigned registersPerVector(const Kernel& kernel);
// Lanes of vectors, where registers have `vector_bits`.
unsigned lanesOf(const Kernel& kernel, unsigned vector_bits);
// Accumulators a lane of each of `reductions` reductions that pass `pass` computes.
unsigned chainsOf(const Kernel& kernel, const Schedule& schedule, int pass, size_t reductions);

}  // namespace wick::loop
