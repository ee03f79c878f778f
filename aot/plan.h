// Where everything lies: memory of a call is planned ahead of time, so that a call allocates nothing.
#pragma once

#include "aot/program.h"

namespace wick::aot {

struct Plan {
  struct Home {
    enum class Kind : uint8_t { Unused, Memory, Weights, Input, Output };
    Kind kind = Kind::Unused;
    int64_t offset = 0;  // bytes in the memory or the weights
    uint32_t index = 0;  // of the argument or result
  };
  std::vector<Home> homes;        // of each buffer
  std::vector<uint32_t> weights;  // the buffers that lie there, in order
  std::vector<bool> direct;       // of each output: whether its steps write to the caller's memory
  int64_t memory_bytes = 0, weights_bytes = 0;
};

// Removes steps whose results nobody needs, and finds a place for every buffer that is left. NotAhead
// when something is read that nothing wrote.
Plan makePlan(Program& program);

}  // namespace wick::aot
