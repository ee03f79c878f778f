// From what a profile saw to what a graph supposes.
#pragma once

#include <functional>

#include "ir/graph.h"

namespace wick {

// The type that a profiled value shall be supposed to have: more than `declared` says, or null when
// nothing shall be supposed.
using TypeOfProfile = std::function<TypePtr(size_t index, const TypePtr& declared)>;

// Replaces the prim::profile nodes (passes/insert_profiles.h) by prim::Guard nodes of those types,
// whose outputs all later users of the values read instead. Linear.
void insertGuards(Graph& graph, const TypeOfProfile& type_of);

}  // namespace wick
