// Runs random graphs as executors do, with profiles, guards and bail-outs, and compares everything
// that a caller could see with what the unoptimized graph does.
#pragma once

#include <cstdint>
#include <string>

namespace wick {

// Checks the graph of one seed (tests/optimizer/random_graph.h): calls of one executor whose
// arguments change dtypes and ranks, and graphs with guards, some of which always fail, each at
// another place. Sets the optimization level to Stress. Returns "" or what differs.
std::string checkPlansOfSeed(uint64_t seed);

}  // namespace wick
