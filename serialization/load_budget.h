// How much memory one load may take beside the file itself.
#pragma once

#include <cstdint>

namespace wick {

// Whoever is about to allocate for what a file says takes it off here first, and gives back what it
// frees while loading goes on. One thread at a time.
class LoadBudget {
 public:
  explicit LoadBudget(uint64_t bytes) : left_(bytes) {}
  LoadBudget(const LoadBudget&) = delete;

  // False, and nothing is taken, when there is less left.
  [[nodiscard]] bool take(uint64_t bytes) {
    if (bytes > left_) return false;
    left_ -= bytes;
    return true;
  }
  // What take() took before.
  void giveBack(uint64_t bytes) { left_ += bytes; }

 private:
  uint64_t left_;
};

}  // namespace wick
