// Runs random programs on numbers in the interpreter and as machine code, and compares everything
// that a caller could see: results, errors with their stacks, and how many steps were taken.
#pragma once

#include <cstdint>
#include <string>

namespace wick {

// "" or what differs, with the program. Sets the JIT's mode and threshold.
std::string compareNative(uint64_t seed);

}  // namespace wick
