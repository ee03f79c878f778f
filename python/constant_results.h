// Results in a recorded graph that depend on no input.
#pragma once

#include <optional>

#include "tracing/tracer.h"

namespace wick::python {

// Computes a tensor of the graph on the CPU if it depends on constants alone, through few operators on small
// tensors that draw no random numbers, and nothing in the graph writes to their memory. None for others.
std::optional<Tensor> constantResult(tracing::Tracer& tracer, const Tensor& fake);

}  // namespace wick::python
