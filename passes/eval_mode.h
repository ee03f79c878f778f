// What layers do outside of training.
#pragma once

#include "ir/graph.h"

namespace wick {

// Removes dropout that does nothing: not in training, or with probability 0. True when anything
// changed.
bool removeDropout(Graph& graph);

// Takes all layers of the graph out of training, whatever the program says: dropout does nothing,
// batch and instance norm use their running statistics where they have some, and so does whatever
// else writes to its arguments in training alone. Results change where
// the program would have trained. Then removeDropout. True when anything changed.
bool convertToEval(Graph& graph);

}  // namespace wick
