// Groups whose operators write to their arguments.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"

namespace wick::loop {

// Whether the node writes what a pointwise operator gives to its first input.
bool isPointwiseWrite(const Node* node);

// The attribute of what replaces a write: its result lies as the input does that was written.
inline Symbol standsForWrite() {
  return Symbol::attr("stands_for_write");
}

// Replaces the writes of a group's body by operators that give new tensors, which those that stand
// behind read, and makes the last of each written input a further output: the number of the input
// for each of these. Throws Unsupported when something else is written.
std::vector<uint32_t> separateWrites(Graph& body);

}  // namespace wick::loop
