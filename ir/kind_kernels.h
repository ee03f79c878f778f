// Kernels of operators for tensors that are not dense (core/tensor_kind.h), beside the records
// whose kernels are for dense ones.
//
// A table names operators with their overloads, as schemas do: {"aten::add.Tensor",
// WICK_KERNEL(f)}. A kernel named after a record also serves the in-place and out= forms that are
// derived from it: the destination takes over what the result consists of. A table may name such a
// form itself.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor_kind.h"
#include "ir/operator.h"

namespace wick {

struct KindKernel {
  const char* op;
  Kernel kernel;
};

using KindKernels = std::array<Kernel, kNumTensorKinds>;

// A static object that adds a table when the program starts. The table must live as long as the
// process.
struct RegisterKindKernels {
  RegisterKindKernels(TensorKind kind, std::span<const KindKernel> kernels);
};

// Those of "aten::add.Tensor"; null when there are none. Lives as long as the process; thread-safe
// once main() runs.
const KindKernels* findKindKernels(std::string_view op);

// The operator whose record a form was derived from, or the operator itself: of sin_ and sin.out it
// is sin.
const Operator& baseOf(const Operator& op);

// All names in tables, sorted, for tests.
std::vector<std::string> namesWithKindKernels();

}  // namespace wick
