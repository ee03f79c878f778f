// Which nodes are arithmetic on plain ints, floats and bools that has an instruction of its own.
#pragma once

#include <optional>

#include "ir/graph.h"
#include "runtime/interpreter/instruction.h"

namespace wick {

struct ScalarSelection {
  OpCode op;
  bool as_float = false;    // int operands are converted to float first
  bool swap = false;        // operands in reverse order
  bool is_compare = false;  // LT, LE, EQ or NE: may be joined with a jump
};

// nullopt when the node is anything else. The choice follows from the types alone.
std::optional<ScalarSelection> selectScalar(const Node* node);

// The instruction that jumps when the comparison `compare` (LT_INT … NE_FLOAT) gives `when`, and
// whether its operands trade places.
struct CompareJump {
  OpCode op;
  bool swap = false;
};
CompareJump jumpForCompare(OpCode compare, bool when);

}  // namespace wick
