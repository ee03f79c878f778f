#include "core/kernel_choice.h"

#include <utility>

namespace wick {

namespace {
thread_local bool measures_kernels = false;
}  // namespace

bool measuresKernels() {
  return measures_kernels;
}

KernelChoiceScope::KernelChoiceScope(bool measures)
    : before_(std::exchange(measures_kernels, measures)) {}

KernelChoiceScope::~KernelChoiceScope() {
  measures_kernels = before_;
}

}  // namespace wick
