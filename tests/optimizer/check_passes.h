// Runs random graphs with and without each pass and compares everything that a caller could see.
#pragma once

#include <cstdint>
#include <string>

namespace wick {

// Checks the graph of one seed (tests/optimizer/random_graph.h): with each pass alone, with random
// sequences of passes, with random moves of nodes, and whether memory that turned out shared was
// known to alias. Returns "" or what differs, with the graphs.
std::string checkSeed(uint64_t seed);

}  // namespace wick
