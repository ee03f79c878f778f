// The kernels of a graph's fusion groups as text.
#pragma once

#include <string>

#include "ir/graph.h"

namespace wick::cli {

enum class KernelText {
  Loops,  // the loop IR
  Llvm,   // LLVM modules before optimization
  Assembly,
};

// Of all groups of the graph and its blocks. What kernels are made for is known only at run time:
// shown are those for contiguous float32 tensors of two dimensions. A group without a loop form
// says why.
std::string kernelText(const Graph& graph, KernelText what);

}  // namespace wick::cli
