// Loops that are loops of the compiled model, and conditions in them.
#pragma once

#include <cstdint>
#include <set>

namespace wick {
class Graph;
}

namespace wick::aot {

// Loops by their place among all of a graph, an outer one before those in it.
struct LoopChoice {
  std::set<int64_t> kept{};      // beside those whose rounds elements of tensors decide
  std::set<int64_t> unrolled{};  // in any case
  bool all = false;   // whether all are kept, but those of few rounds whose number the text tells
  bool none = false;  // whether none is kept
};

// The loops that are kept become loops of one round, with operators in front of, in and behind the round that note
// what is a loop (Recording::beginLoop and so on); conditions in them that elements decide become two
// conditions, both of which are recorded. Numbers that such loops carry, and the number of the round, are
// numbers of the compiled model: numbersAsTensors() is to be called afterwards. Whether any loop was kept.
// KeptLoopError for a loop that cannot be kept.
bool keepLoops(Graph& graph, const LoopChoice& choice);

// Lets the recording know how many rounds each loop has (Recording::roundsOfLoops).
void countRounds(Graph& graph);

// Rounds from which on a loop is long.
inline constexpr int64_t kLongLoop = 32;

}  // namespace wick::aot
