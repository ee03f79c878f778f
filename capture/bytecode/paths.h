// Paths through code, found from the code alone. Errors lead nowhere here.
#pragma once

#include <vector>

#include "capture/bytecode/instruction.h"

namespace wick::capture {

// Returns the first instruction that all paths from the branch to the end of the function come to:
// its immediate postdominator. The number of instructions where they only meet in the end, -1 where
// some path never ends.
int meetingPoint(const DecodedCode& code, int branch);

// Returns whether all paths from the instruction end with an exception that the code raises itself.
bool alwaysRaises(const DecodedCode& code, int from);

// Returns the instructions on the paths from `from` to `to`, without `to`, where all of them come there; none where a path
// ends elsewhere or comes to `except` before.
std::vector<int> instructionsBetween(const DecodedCode& code, int from, int to, int except);

// Returns whether some path from the instruction reads the local before anything is stored in it.
bool readsLocal(const DecodedCode& code, int from, int slot);

}  // namespace wick::capture
