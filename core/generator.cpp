#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <numbers>
#include <optional>
#include <unordered_map>

#include "core/error_types.h"
#include "core/generator_state.h"
#include "core/ivalue.h"
#include "core/mersenne_twister.h"

namespace wick {

namespace {

struct Numbers {
  uint64_t seed = 0;
  MersenneTwister engine;
  std::optional<double> next_normal;
  std::map<int, uint64_t> philox_offsets;  // by device
};
struct GuardedNumbers : Numbers {
  mutable std::mutex mutex;
};

// The numbers of all generators there are, for GeneratorState.
class AllNumbers {
 public:
  void add(const GeneratorObject* generator, GuardedNumbers* numbers) {
    std::lock_guard lock(mutex_);
    all_[generator] = numbers;
  }
  void remove(const GeneratorObject* generator) {
    std::lock_guard lock(mutex_);
    all_.erase(generator);
  }
  // Of one that lives.
  GuardedNumbers& of(const GeneratorObject* generator) {
    std::lock_guard lock(mutex_);
    return *all_.at(generator);
  }

 private:
  std::mutex mutex_;
  std::unordered_map<const GeneratorObject*, GuardedNumbers*> all_;
};

AllNumbers& allNumbers() {
  static auto* instance = new AllNumbers;
  return *instance;
}

}  // namespace

struct GeneratorObject::State : GuardedNumbers {
  uint64_t next64() {
    uint64_t high = engine();
    return high << 32 | engine();
  }
  double uniformDouble() {
    return static_cast<double>(next64() & ((uint64_t{1} << 53) - 1)) * 0x1p-53;
  }
};

GeneratorObject::GeneratorObject(uint64_t seed) : state_(std::make_unique<State>()) {
  allNumbers().add(this, state_.get());
  this->seed(seed);
}

GeneratorObject::~GeneratorObject() {
  allNumbers().remove(this);
}

void GeneratorObject::seed(uint64_t seed) {
  std::lock_guard lock(state_->mutex);
  state_->seed = seed;
  state_->engine.seed(static_cast<uint32_t>(seed));
  state_->next_normal.reset();
  state_->philox_offsets.clear();
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
  state_->engine.fill(out, n);
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

struct GeneratorState::Numbers {
  wick::Numbers numbers;
};

GeneratorState GeneratorState::of(const GeneratorObject& generator) {
  const GuardedNumbers& now = allNumbers().of(&generator);
  GeneratorState state;
  std::lock_guard lock(now.mutex);
  state.numbers_ = std::make_shared<const Numbers>(Numbers{now});
  return state;
}

void GeneratorState::restore(GeneratorObject& generator) const {
  GuardedNumbers& now = allNumbers().of(&generator);
  std::lock_guard lock(now.mutex);
  static_cast<wick::Numbers&>(now) = numbers_->numbers;
}

namespace {

// A state of PyTorch's generator: what at::CPUGeneratorImpl::get_state() writes.
struct PyTorchState {
  uint64_t seed;
  int32_t left;  // numbers of the block that are not used, and one
  int32_t seeded;
  uint64_t next;  // the index of the next number
  uint64_t words[MersenneTwister::kWords];
  double normal_x, normal_y, normal_rho;  // normal_y is the sample that waits
  int32_t normal_is_valid;
  float next_float_normal;
  uint8_t next_float_normal_is_valid;
  uint8_t padding[7];
};

}  // namespace

GeneratorState GeneratorState::fromPyTorch(std::span<const uint8_t> bytes) {
  PyTorchState given;
  static_assert(sizeof given == kPyTorchBytes);
  if (bytes.size() != sizeof given) {
    throw UsageError(fmt::format("the state of a generator: expected {} bytes, got {}",
                                 sizeof given, bytes.size()));
  }
  std::memcpy(&given, bytes.data(), sizeof given);
  constexpr size_t kWords = MersenneTwister::kWords;
  const bool used_up = given.left == 1;
  if (!used_up && given.next > kWords) {
    throw UsageError("the state of a generator: the next number lies beyond the block");
  }
  uint32_t words[kWords];
  for (size_t i = 0; i < kWords; ++i) words[i] = static_cast<uint32_t>(given.words[i]);
  wick::Numbers numbers;
  numbers.seed = given.seed;
  numbers.engine.load(words, used_up ? kWords : static_cast<size_t>(given.next));
  if (given.normal_is_valid) numbers.next_normal = given.normal_y;
  GeneratorState state;
  state.numbers_ = std::make_shared<const Numbers>(Numbers{numbers});
  return state;
}

bool GeneratorState::toPyTorch(std::span<uint8_t> bytes) const {
  PyTorchState known;
  if (bytes.size() != sizeof known) {
    throw UsageError(fmt::format("the state of a generator: expected {} bytes, got {}",
                                 sizeof known, bytes.size()));
  }
  std::memcpy(&known, bytes.data(), sizeof known);
  const wick::Numbers& now = numbers_->numbers;
  const size_t used = now.engine.used();
  bool same = used == (known.left == 1 ? MersenneTwister::kWords : known.next) &&
              now.next_normal.has_value() == (known.normal_is_valid != 0) &&
              (!now.next_normal || *now.next_normal == known.normal_y);
  for (size_t i = 0; i < MersenneTwister::kWords; ++i) {
    same &= known.words[i] == now.engine.words()[i];
    known.words[i] = now.engine.words()[i];
  }
  if (same) return false;
  known.seed = now.seed;
  known.next = used;
  known.left = static_cast<int32_t>(MersenneTwister::kWords + 1 - used);
  known.normal_is_valid = now.next_normal.has_value();
  known.normal_y = now.next_normal.value_or(0);
  std::memcpy(bytes.data(), &known, sizeof known);
  return true;
}

PhiloxPosition takePhilox(GeneratorObject& generator, int device, uint64_t numbers) {
  GuardedNumbers& now = allNumbers().of(&generator);
  std::lock_guard lock(now.mutex);
  uint64_t& offset = now.philox_offsets[device];
  const PhiloxPosition at{now.seed, offset};
  offset += (numbers + 3) / 4 * 4;
  return at;
}

GeneratorObject& defaultGenerator() {
  constexpr uint64_t kDefaultSeed = 67280421310721;  // PyTorch's
  // Retained for good: operators may run while the process ends.
  static GeneratorRef* generator = new GeneratorRef(makeRef<GeneratorObject>(kDefaultSeed));
  return **generator;
}

}  // namespace wick
