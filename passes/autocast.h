// Mixed precision: what `with torch.autocast("cuda", dtype=torch.float16)` does to a graph.
#pragma once

#include "ir/graph.h"

namespace wick {

// How autocast treats the tensors of an operator: it casts them to its dtype, to float32, to float32
// unless the call says which dtype it wants (on CUDA alone), to float32 if one of them is of that.
enum class CastPolicy : uint8_t { None, Reduced, Full, FullUnlessTold, FullOnCuda, Widest };
// Returns the policy for an operator. RuntimeError for those that are unsafe in low precision.
CastPolicy castPolicyOf(const Operator& op);

// Whether the graph, blocks within blocks included, enters a scope of torch.autocast,
// torch.cpu.amp.autocast or torch.cuda.amp.autocast.
bool entersAutocast(const Graph& graph);

// Puts casts in front of the operators that stand within such scopes, as PyTorch's scripts have
// them, and removes the scopes: aten::_autocast_to_reduced_precision before products and
// convolutions, aten::_autocast_to_full_precision before what needs the range of float32 and before
// operators of several tensors, which then agree on float32. All others take what they are given.
// Calls must be inlined, and what a scope is made with must be constant. RuntimeError for scopes
// that the pass cannot understand, for calls within one that could not be inlined, and for
// operators that are unsafe in low precision. True when anything changed.
bool insertAutocasts(Graph& graph);

// What autocast does to the tensors of each type of device.
struct AutocastState {
  bool cuda = false;
  bool cpu = false;
  DType cuda_dtype = DType::Half;
  DType cpu_dtype = DType::BFloat16;
  bool any() const { return cuda || cpu; }
};

// The same for a graph that as a whole stands within a scope.
bool insertAutocastsWithin(Graph& graph, const AutocastState& around);

}  // namespace wick
