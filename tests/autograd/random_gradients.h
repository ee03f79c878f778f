// Random programs whose gradients are compared with differences.
#pragma once

#include <cstdint>
#include <string>

namespace wick {

// A program with `value(a: Tensor, b: Tensor, k: int) -> Tensor`, which computes a number from two
// matrices of doubles [2, 3] by arithmetic, views, writes to them, branches, loops, containers,
// checkpoints and functions with derivatives of their own. The same for the same seed.
std::string randomGradientProgram(uint64_t seed);

struct GradientComparison {
  enum class Outcome {
    Agrees,
    // The tape refuses, because what it saved was written to.
    Refused,
    // The value has a kink or a large number nearby, where differences say nothing.
    Unclear,
    Differs,
  } outcome = Outcome::Agrees;
  std::string text;  // what differs
};

// Compares the gradients of one program with differences of its values, which are computed without
// recording; and when `second`, the gradients of a function of the gradients.
GradientComparison compareGradients(const std::string& program, bool second);

}  // namespace wick
