// What a compiled call does, as a list of operators on slots, when its graph is nothing else.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "ir/function.h"
#include "ir/operator.h"

namespace wick::python {

// As many values as are needed, without memory of their own: a call of a small operator would notice
// the rest being cleared.
template <size_t kMax>
class ValueArray {
 public:
  explicit ValueArray(size_t count) : count_(count) {
    std::uninitialized_default_construct_n(data(), count_);
  }
  ~ValueArray() { std::destroy_n(data(), count_); }
  ValueArray(const ValueArray&) = delete;
  IValue* data() { return reinterpret_cast<IValue*>(memory_); }
  IValue& operator[](size_t i) { return data()[i]; }

 private:
  alignas(IValue) std::byte memory_[kMax * sizeof(IValue)];
  size_t count_;
};

struct CallPlan {
  struct Step {
    // Null: the inputs become a list of `element`, or a tuple without it.
    const Operator* op = nullptr;
    TypePtr element;
    std::vector<uint16_t> inputs;
    std::vector<bool> last_use;  // of each input: the slot is not read again
    uint16_t first_output = 0;
    uint16_t num_outputs = 1;
  };
  size_t num_arguments = 0;
  size_t num_slots = 0;
  std::vector<std::pair<uint16_t, IValue>> constants;
  std::vector<Step> steps;
  uint16_t result = 0;
  // When the result is all that one operator returns, and it names them.
  std::string tuple_name;
  std::vector<std::string> tuple_fields;

  // Runs the steps; the slots hold the arguments at first.
  IValue run(IValue* slots) const;
};

inline constexpr size_t kMaxPlanSlots = 64;

// Null when the graph holds anything but operators, lists, tuples and constants, or more slots.
std::unique_ptr<CallPlan> planOf(const Graph& graph, size_t max_slots = kMaxPlanSlots);

}  // namespace wick::python
