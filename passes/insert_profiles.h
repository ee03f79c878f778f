// Asking a run what its tensors are.
#pragma once

#include "ir/graph.h"

namespace wick {

enum class ProfileChoice {
  Useful,      // tensors that nodes of asksForTypes() read and whose types say too little
  Everything,  // all tensors whose types say too little: for tests
};

// Puts a prim::profile node in front of the first node that reads each chosen value, and one at the
// end of the graph. Returns the number of values, which are numbered from 0; without any the graph
// stays as it is. At most kMaxProfiledValues are chosen. Linear.
size_t insertProfiles(Graph& graph, ProfileChoice choice);
inline constexpr size_t kMaxProfiledValues = 128;

}  // namespace wick
