// Work that must not fail half done.
#pragma once

namespace wick {

// While it lives, the process's limit of memory (setAllocationLimit) holds for all threads but this
// one. For short work that gives back what it takes, and could not be undone.
class UnlimitedMemoryScope {
 public:
  UnlimitedMemoryScope();
  ~UnlimitedMemoryScope();
  UnlimitedMemoryScope(const UnlimitedMemoryScope&) = delete;
  UnlimitedMemoryScope& operator=(const UnlimitedMemoryScope&) = delete;

 private:
  const bool before_;
};

}  // namespace wick
