// Results of a random module's calls, in whatever way it is run, and how they differ.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/strangers/random_module.h"

namespace wick::strangers {

struct Outcome {
  std::vector<Tensor> results;  // of all calls, or of those before one that raised
  double noise = 0;             // of the module
  bool trains = false;          // whether one of them requires a gradient
  bool raised = false;
  std::string error;                        // of the call
  std::map<std::string, Tensor> gradients;  // of parameters, by name
  bool walk_raised = false;                 // the walk back from the last result did
};

// A module made ready for calls.
struct Ready {
  std::function<IValue(const Tensor&)> call;
  std::optional<Module> trained{};  // whose parameters get gradients; none: nobody walks back
};

// Calls what `prepare` returns with each input of `made`, then walks back from the sum of the last result. RuntimeErrors of
// `prepare` and of calls are part of the outcome.
Outcome outcomeOf(const RandomModule& made, const std::function<Ready(const Module&)>& prepare);
// Returns the outcome in which no pass changes a graph and no kernel is made.
Outcome plainOutcomeOf(const RandomModule& made);

// Returns how `got` differs from `want`, or nothing. Numbers may differ by `tolerance`, relative to the largest of the tensor
// because a sum may cancel, and by `noise`. Gradients are compared for modules of float64.
std::optional<std::string> difference(const Outcome& got, const Outcome& want, double tolerance);
std::optional<std::string> difference(const Tensor& got, const Tensor& want, double tolerance,
                                      double noise = 0);
// Returns the tolerance for ways that may round numbers otherwise.
double toleranceOf(const RandomModule& made);

}  // namespace wick::strangers
