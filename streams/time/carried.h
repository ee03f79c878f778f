// Operators that hand something on from piece to piece: running sums, the states of recurrent layers,
// counts of steps.
#pragma once

#include <memory>
#include <vector>

#include "ir/graph.h"

namespace wick::streams {

// Of one node in one stream; used by one thread.
class Carried {
 public:
  virtual ~Carried() = default;
  // The node's results for the next piece, of `steps` steps, which lies in `arguments` where the node's
  // own call has all of the time. The results one behind the other are those of that call.
  virtual std::vector<IValue> run(std::vector<IValue> arguments, int64_t steps) = 0;
  virtual void reset() = 0;
  // Elements of tensors that are kept.
  virtual int64_t elements() const = 0;
};

// Null for other nodes. `axis` is where time is in the first argument.
std::unique_ptr<Carried> carriedBy(const Node& node, int64_t axis);

}  // namespace wick::streams
