// What layers do outside of training.
#pragma once

#include "ir/graph.h"

namespace wick {

// Removes dropout that does nothing: not in training, or with probability 0. True when anything
// changed.
bool removeDropout(Graph& graph);

}  // namespace wick
