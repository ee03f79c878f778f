// Where time is in the results of operators, and how they go over it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace wick::streams {

// How a node computes piece by piece.
struct TimeRule {
  enum class Kind {
    Each,    // every step by itself: the node is called with the piece
    Window,  // results from windows of steps; the node is called without padding along time
    Pad,     // adds steps at both ends
    Cut,     // leaves out steps at both ends
  };
  Kind kind = Kind::Each;
  int64_t axis = 0;  // of time in the results
  // Of a Window.
  int64_t window = 1;
  int64_t stride = 1;
  // Steps that are added or left out in front and behind, and what they hold.
  int64_t before = 0;
  int64_t behind = 0;
  double fill = 0;
  // The argument, a list, that says what happens along time, and what it is for a call with a piece.
  std::optional<size_t> replaced;
  std::vector<int64_t> replacement;
};

// `arguments` are the node's inputs in an example call (of lists and tensors with time, too), `axes`
// where time is in each, -1 where it is not. UsageError, which begins with the operator's name, for
// what cannot be computed piece by piece.
TimeRule timeRuleOf(const Node& node, const std::vector<IValue>& arguments,
                    const std::vector<int64_t>& axes);

}  // namespace wick::streams
