// The command line of a checker of random programs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace wick {

// Calls `check` for COUNT seeds (10,000) from FIRST_SEED (1) on, as the arguments [COUNT
// [FIRST_SEED]] say. It returns what is wrong, or nothing. Prints the first few failures and the
// counts; returns the exit code, 1 when anything was wrong.
int checkSeeds(int argc, char** argv, const std::function<std::string(uint64_t)>& check);

}  // namespace wick
