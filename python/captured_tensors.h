// Wick's own tensors for wick.compile, which captures their operators.
#pragma once

#include <memory>

#include "capture/world.h"

namespace wick::python {

// The world of wick.Tensor. Lives as long as the process.
std::shared_ptr<const capture::World> ownTensors();

// Returns a graph of the world that does the same, operator by operator, without any optimization.
// Null where the graph holds more than operators.
std::shared_ptr<capture::CapturedGraph> operatorByOperator(
    const std::shared_ptr<capture::CapturedGraph>& graph);

// Returns a graph that calls a function of Python instead: it gets the tensors, and gives a tuple or
// list of tensors.
std::shared_ptr<capture::CapturedGraph> calledFunction(
    const std::shared_ptr<capture::CapturedGraph>& graph, capture::Object function);

}  // namespace wick::python
