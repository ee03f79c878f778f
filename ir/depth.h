// How deep the blocks of a graph nest, and room for walks that recurse into them.
//
// Blocks nest with the program: each `elif` and each early return is one level. Walks over a graph
// may recurse a block at a time, because the entry points (compiling, the pipeline, lowering,
// printing, verifying, reading the text form) run on a stack that is large enough for
// kMaxBlockDepth levels.
#pragma once

#include <cstddef>
#include <utility>

#include "core/stack.h"
#include "ir/graph.h"

namespace wick {

// Deeper programs are refused with a CompileError.
inline constexpr size_t kMaxBlockDepth = 20'000;

// 1 for a graph without control flow.
size_t blockDepth(const Graph& graph);

// What a recursive walk over blocks may use at most a level, and apart from that.
inline constexpr size_t kStackPerBlock = 2048;
inline constexpr size_t kStackForWalk = size_t{256} << 10;

// Runs `walk` with stack for a recursive walk over `graph`. Exceptions pass through.
template <class F>
void withStackFor(const Graph& graph, F&& walk) {
  withStack(kStackForWalk + kStackPerBlock * blockDepth(graph), std::forward<F>(walk));
}

}  // namespace wick
