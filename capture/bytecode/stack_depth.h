// How deep the value stack is at each instruction.
#pragma once

#include <vector>

#include "capture/bytecode/instruction.h"

namespace wick::capture {

struct StackDepths {
  // The depth before each instruction, -1 if no path leads to it. In a generator the value that the
  // first send() brings lies on the stack behind RETURN_GENERATOR.
  std::vector<int> before;
  int deepest = 0;
};

// Follows all paths through the code, also those into handlers. Throws BytecodeError if two paths
// meet at different depths, if the stack has too few values for an instruction or for the handler
// that its error leads to, and if a path leads behind the last instruction. `code` must have passed
// checkOperands.
StackDepths stackDepths(const DecodedCode& code);

}  // namespace wick::capture
