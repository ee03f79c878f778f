// The reference evaluator of kernels: point after point, nothing clever. For tests.
#pragma once

#include <span>

#include "codegen/loop/kernel.h"
#include "codegen/scalar/evaluate.h"

namespace wick::loop {

// Where an access's elements lie: the address of the first one, and the step in bytes along each
// dimension of the domain (zero where it does not vary). The position of a point is an address
// that begins at null.
struct Place {
  char* base;
  std::array<int64_t, kMaxRank> steps;
};

// Runs the kernel over a domain of the given sizes; places[i] belongs to access i, numbers[i] are
// the bits of number i. False when a check did not hold.
bool evaluate(const Kernel& kernel, std::span<const int64_t> sizes, std::span<const Place> places,
              std::span<const ScalarBits> numbers);

}  // namespace wick::loop
