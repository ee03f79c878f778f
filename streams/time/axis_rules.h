// Where time is in the results of operators, and how they go over it.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "streams/time/lengths.h"

namespace wick::streams {

// How a node computes piece by piece.
struct TimeRule {
  enum class Kind {
    Each,    // every step by itself: the node is called with the piece
    Window,  // results from windows of steps; the node is called without padding along time
    Spread,  // every step adds to a window of results: a transposed convolution
    Pad,     // adds steps at both ends
    Mirror,  // adds steps at both ends that are there already
    Cut,     // leaves out steps at both ends
    Limit,   // as many steps as another value has
    Carry,   // hands something on from piece to piece (streams/time/carried.h)
  };
  Kind kind = Kind::Each;
  int64_t axis = 0;  // of time in the results
  int64_t push = 1;  // steps that are given for each that is taken, or for each stride
  // Of a Window, and of a Spread, which gives `stride` results for each step.
  int64_t window = 1;
  int64_t stride = 1;
  // Steps that are added or left out in front and behind, and what they hold. Of a Spread: results
  // that are left out, and those that come at the end beyond those of the last step.
  int64_t before = 0;
  int64_t behind = 0;
  int64_t beyond = 0;
  double fill = 0;
  bool repeats =
      false;  // of a Mirror: the first and the last step, not those next to it in reverse
  // Arguments that say what happens along time, and what they are for a call with a piece, and for
  // the last call of a Spread.
  using Replaced = std::vector<std::pair<size_t, IValue>>;
  Replaced replaced;
  Replaced replaced_last;
  // How many results, from the first on, have time. The others are known at the end alone.
  size_t timed = SIZE_MAX;
  // What gives the number of steps where no argument with time does, and the element of the list of
  // sizes that is this number.
  const Value* steps_of = nullptr;
  std::optional<std::pair<size_t, size_t>> sized;
};

// What is known of the arguments of a node.
struct TimeArguments {
  std::vector<IValue> values;       // in an example call, of lists and tensors with time, too
  std::vector<int64_t> axes;        // where time is in each, -1 where it is not
  std::vector<LengthList> lengths;  // which numbers in each are lengths of time; empty: none
};

// UsageError, which begins with the operator's name, for what cannot be computed piece by piece.
TimeRule timeRuleOf(const Node& node, const TimeArguments& arguments);

}  // namespace wick::streams
