// What running Code tells the executor that made it, and asks of it when a supposition fails.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/ivalue.h"
#include "runtime/executor/tensor_key.h"

namespace wick {

class Code;

// What a BAIL_OUT instruction supposes of its values.
struct GuardSite {
  struct Expected {
    uint64_t mask;  // which bits of the TensorKey matter
    uint64_t bits;
    uint32_t profile;  // the number of the value among those that are profiled
    bool holds(const IValue& value) const { return (TensorKey::of(value).bits() & mask) == bits; }
  };
  uint32_t point;  // where to go on when one does not hold
  std::vector<Expected> expected;
};

// Thread-safe. Lives as long as the Codes that refer to it.
class Speculation {
 public:
  virtual ~Speculation() = default;
  // A profiled run saw this value; a profiled run came to its end.
  virtual void observe(size_t profile, const IValue& value) = 0;
  virtual void finishRun() = 0;
  // One of the values is not what was supposed. Returns what goes on with the live values, compiled
  // when it is first needed; it lives as long as this.
  virtual const Code& leave(const GuardSite& site, std::span<const IValue> values) = 0;
};

}  // namespace wick
