// Programs recorded from what C++ code does with example inputs:
//
//   wick::Program program = wick::trace(
//       [](const std::vector<wick::IValue>& in) -> wick::IValue {
//         return wick::ops::relu(in[0].tensor() + in[1].tensor());
//       },
//       {x, y}, {"f", {"x", "y"}});
//   program.call("f", {other, another});
//
// Recorded are operators (wick_ops.h) and calls of compiled functions, on the calling thread. What
// the code decides itself (branches, loops, numbers that it reads of tensors) stays as it was for
// the example. Inputs and results are tensors, or lists, tuples and dicts of tensors.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/ivalue.h"

#pragma GCC visibility push(default)

namespace wick {

class CompilationUnit;

using TracedCode = std::function<IValue(const std::vector<IValue>&)>;

struct TraceOptions {
  std::string name = "traced";              // of the function
  std::vector<std::string> argument_names;  // of the first inputs; others are input_0, input_1, …
};

// A unit with the one function. RuntimeError for inputs and results that cannot be recorded, and
// within another trace; what the code throws goes on to the caller. See wick::trace() in wick.h.
std::shared_ptr<CompilationUnit> traceUnit(const TracedCode& code,
                                           const std::vector<IValue>& example_inputs,
                                           const TraceOptions& options = {});

}  // namespace wick

#pragma GCC visibility pop
