// The state of a generator of random numbers, to go back to.
#pragma once

#include <memory>
#include <span>

#include "core/ivalue.h"

namespace wick {

// A copy of where a generator stands. Cheap to copy; immutable.
class GeneratorState {
 public:
  // Of now. Thread-safe.
  static GeneratorState of(const GeneratorObject& generator);
  // Lets the generator go on from there. Thread-safe.
  void restore(GeneratorObject& generator) const;

  // Bytes of torch.get_rng_state() for a generator of the CPU.
  static constexpr size_t kPyTorchBytes = 5056;
  // Reads such a state. UsageError unless the bytes are one.
  static GeneratorState fromPyTorch(std::span<const uint8_t> bytes);
  // Writes the state over the one that it came from; returns whether they differ.
  bool toPyTorch(std::span<uint8_t> bytes) const;

 private:
  struct Numbers;
  std::shared_ptr<const Numbers> numbers_;
};

// Where a counter-based generator of a device takes its numbers from. Each device has a position of
// its own, which begins at zero when the generator is seeded.
struct PhiloxPosition {
  uint64_t seed;
  uint64_t offset;
};
// The position now; the next call gets one that is `numbers` further, rounded up to whole calls of
// four. Thread-safe.
PhiloxPosition takePhilox(GeneratorObject& generator, int device, uint64_t numbers);

// Lets the default generator start from a state for a scope, and go on afterwards as if nothing had
// been drawn. (Other threads draw from the same generator.)
class DefaultGeneratorGuard {
 public:
  explicit DefaultGeneratorGuard(const GeneratorState& state)
      : before_(GeneratorState::of(defaultGenerator())) {
    state.restore(defaultGenerator());
  }
  ~DefaultGeneratorGuard() { before_.restore(defaultGenerator()); }
  DefaultGeneratorGuard(const DefaultGeneratorGuard&) = delete;
  DefaultGeneratorGuard& operator=(const DefaultGeneratorGuard&) = delete;

 private:
  const GeneratorState before_;
};

}  // namespace wick
