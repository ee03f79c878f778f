// What moves numbers between the processes that compute together.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"

#pragma GCC visibility push(default)

namespace wick::distributed {

enum class Reduction : uint8_t { Sum, Max, Min };

// Used by one thread alone, that of its group, which also makes and destroys it. All processes make the
// same calls in the same order. Functions return when the numbers are there, and throw RuntimeError
// when the library reports an error.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;  // from 0 on
  virtual int size() const = 0;
  // In place, element by element over all processes, with the same bits in each of them.
  // `dtype`: Float, Double, Int, Long, Byte.
  virtual void allReduce(void* numbers, int64_t count, DType dtype, Reduction reduction) = 0;
  // Everybody gets the bytes of the process `root`.
  virtual void broadcast(void* bytes, size_t count, int root) = 0;
  // Returns when all processes have come here.
  virtual void barrier() = 0;
};

}  // namespace wick::distributed

#pragma GCC visibility pop
