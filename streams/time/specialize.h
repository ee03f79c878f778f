// A program for inputs like those of an example, of any length.
#pragma once

#include <memory>
#include <vector>

#include "ir/function.h"

namespace wick::streams {

// A copy of the program's graph in which all that follows from the example's dtypes and sizes, but for
// the length of its first argument along `axis`, is decided: branches over ranks and sizes are gone, as
// are loops over them; other arguments that are numbers, text or None are constants. Writes to tensors
// that nobody else sees are new tensors. Results are the same, to the last bit, for all arguments that
// are like the example. As many arguments as the graph has inputs; the first is a tensor.
std::shared_ptr<Graph> specializedOverTime(const GraphFunction& program,
                                           const std::vector<IValue>& example, int64_t axis);

// Writes out a loop whose number of iterations is a constant; false when it is too long, or ends early.
bool unrollOverTime(Node* loop);

}  // namespace wick::streams
