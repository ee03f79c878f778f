// The exceptions that end a graph.
#pragma once

#include <cstdint>
#include <string>

namespace wick::capture {

// Thrown where capture does not know what an instruction does: the graph ends before it.
struct GraphBreak {
  std::string reason;
  // Set on the way out, where a function that was called ended the graph.
  std::string place = {};
  // The step of the root frame that made the object in question, -1 if there is none.
  int64_t born = -1;
  // Whether arrays would have to belong to the other library of tensors.
  bool other_world = false;
};

// Thrown where a question about a number that elements decide has no answer for all its values.
struct UnknownSize : GraphBreak {
  explicit UnknownSize(const std::string& size)
      : GraphBreak{"the program needs a size that elements decide (" + size + ")"} {}
};

}  // namespace wick::capture
