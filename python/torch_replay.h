// Graphs that PyTorch itself runs.
#pragma once

#include <memory>

#include "python/torch_graph.h"

namespace wick::python {

// Returns a graph that makes the calls of the program again, without the program.
std::shared_ptr<capture::CapturedGraph> replayedCalls(std::shared_ptr<const TorchRecord> record);
// Returns a graph that calls a function of Python, which gives a tuple or list of tensors.
std::shared_ptr<capture::CapturedGraph> calledTorchFunction(
    std::shared_ptr<const TorchRecord> record, capture::Object function);

}  // namespace wick::python
