#pragma once

#include <cstddef>

#include "core/ivalue.h"

namespace wick {

// A row of registers that grows. Buffers are kept for the next run of the thread.
class RegisterStack {
 public:
  static constexpr size_t kInitialCapacity = 1024;
  RegisterStack();
  ~RegisterStack();
  RegisterStack(const RegisterStack&) = delete;
  RegisterStack& operator=(const RegisterStack&) = delete;
  IValue* data() const { return data_; }
  size_t capacity() const { return capacity_; }
  // Moves the registers; pointers into them become invalid.
  void grow(size_t capacity);

 private:
  IValue* data_;
  size_t capacity_;
};

}  // namespace wick
