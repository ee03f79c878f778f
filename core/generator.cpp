#include <cmath>
#include <mutex>
#include <numbers>
#include <optional>
#include <random>

#include "core/ivalue.h"

namespace wick {

struct GeneratorObject::State {
  mutable std::mutex mutex;
  uint64_t seed = 0;
  std::mt19937 engine;
  std::optional<double> next_normal;

  uint64_t next64() {
    uint64_t high = engine();
    return high << 32 | engine();
  }
  double uniformDouble() {
    return static_cast<double>(next64() & ((uint64_t{1} << 53) - 1)) * 0x1p-53;
  }
};

GeneratorObject::GeneratorObject(uint64_t seed) : state_(std::make_unique<State>()) {
  this->seed(seed);
}

GeneratorObject::~GeneratorObject() = default;

void GeneratorObject::seed(uint64_t seed) {
  std::lock_guard lock(state_->mutex);
  state_->seed = seed;
  state_->engine.seed(static_cast<uint32_t>(seed));
  state_->next_normal.reset();
}

uint64_t GeneratorObject::currentSeed() const {
  std::lock_guard lock(state_->mutex);
  return state_->seed;
}

uint32_t GeneratorObject::next32() {
  std::lock_guard lock(state_->mutex);
  return static_cast<uint32_t>(state_->engine());
}

uint64_t GeneratorObject::next64() {
  std::lock_guard lock(state_->mutex);
  return state_->next64();
}

void GeneratorObject::fill32(uint32_t* out, size_t n) {
  std::lock_guard lock(state_->mutex);
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<uint32_t>(state_->engine());
}

float GeneratorObject::uniformFloat() {
  return static_cast<float>(next32() & 0xFFFFFF) * 0x1p-24f;
}

double GeneratorObject::uniformDouble() {
  std::lock_guard lock(state_->mutex);
  return state_->uniformDouble();
}

double GeneratorObject::normal() {
  std::lock_guard lock(state_->mutex);
  if (state_->next_normal) {
    double value = *state_->next_normal;
    state_->next_normal.reset();
    return value;
  }
  double u1 = state_->uniformDouble();
  double u2 = state_->uniformDouble();
  double r = std::sqrt(-2.0 * std::log1p(-u2));
  double theta = 2.0 * std::numbers::pi * u1;
  state_->next_normal = r * std::sin(theta);
  return r * std::cos(theta);
}

GeneratorObject& defaultGenerator() {
  constexpr uint64_t kDefaultSeed = 67280421310721;  // PyTorch's
  // Retained for good: operators may run while the process ends.
  static GeneratorRef* generator = new GeneratorRef(makeRef<GeneratorObject>(kDefaultSeed));
  return **generator;
}

}  // namespace wick
