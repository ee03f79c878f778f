// Programs that look at the strides of what convolutions give.
#pragma once

#include <cstddef>

#include "ir/graph.h"

namespace wick {

// Convolutions that fuseEpilogues() made give their results in channels-last order. This keeps that from programs:
// where nobody writes, view becomes reshape, which copies elements that lie in another order; layers whose strides matter
// to anything else (as_strided, views that are written to, view of a permuted result, which may have to raise) get an aten::contiguous behind them. Returns how many did. Linear.
// Inputs that lie in that order themselves, when the program runs, make layers give it anyway: then nothing is changed.
size_t keepRowMajor(Graph& graph);
// Returns whether all weights of convolutions, before fuseEpilogues(), lie in channels-last order, so that programs find
// results in that order anyway.
bool areLayersChannelsLast(const Graph& graph);

}  // namespace wick
