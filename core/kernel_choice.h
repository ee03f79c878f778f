// How devices choose among kernels that do the same.
#pragma once

namespace wick {

// Returns whether a product of a shape that is new to the process may be computed in several ways, to keep the fastest; its
// bits may then differ from process to process. Off at first, for each thread.
bool measuresKernels();

// Turns that on or off for the calling thread, until the scope's end.
class KernelChoiceScope {
 public:
  explicit KernelChoiceScope(bool measures);
  ~KernelChoiceScope();
  KernelChoiceScope(const KernelChoiceScope&) = delete;
  KernelChoiceScope& operator=(const KernelChoiceScope&) = delete;

 private:
  const bool before_;
};

}  // namespace wick
