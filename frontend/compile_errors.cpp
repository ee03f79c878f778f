#include "frontend/compile_errors.h"

namespace wick {

void CompileErrors::throwIfAny() const {
  if (all_.empty()) return;
  CompileError together = all_.front();
  for (size_t i = 1; i < all_.size(); ++i) together.append(all_[i]);
  throw together;
}

void CompileErrors::add(const CompileError& error) {
  ++tries_;
  if (seen_.insert(error.what()).second) all_.push_back(error);
}

}  // namespace wick
