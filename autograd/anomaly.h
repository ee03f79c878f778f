// Finding where a gradient became NaN.
//
//   wick::autograd::AnomalyMode anomalies;      // for this thread, until it goes out of scope
//   wick::RunOptions options;
//   options.observer = anomalies.observer();    // so that errors name the line of the forward call
//   program.call("train", {x}, {}, options);
//
// While it is on, each node that is recorded remembers the call it stands for, and a walk back
// raises a RuntimeError at the first node that makes a NaN: it names the operator, and the place of
// its forward call in the script. Both cost: every gradient is read once more.
#pragma once

#include <functional>
#include <vector>

#include "core/tensor.h"

#pragma GCC visibility push(default)

namespace wick {
class OperatorObserver;
}

namespace wick::autograd {

class Node;

// Switches the detection on for a scope of the calling thread. Scopes nest.
class AnomalyMode {
 public:
  // `check_nan`: false remembers the places alone, for errors of other kinds.
  explicit AnomalyMode(bool check_nan = true);
  ~AnomalyMode();
  AnomalyMode(const AnomalyMode&) = delete;
  AnomalyMode& operator=(const AnomalyMode&) = delete;
  // What runs must be watched by, for places to be known. Lives as long as the process.
  OperatorObserver* observer() const;

 private:
  bool before_, check_before_;
};

#pragma GCC visibility pop

// Whether it is on for this thread.
bool detectsAnomaly();
// A node was recorded.
void noteRecorded(Node& node);
// Looks at what `apply` makes, which applies the node; errors name the forward call.
std::vector<Tensor> applyWatched(Node& node, const std::function<std::vector<Tensor>()>& apply);

}  // namespace wick::autograd
