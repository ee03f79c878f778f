// What a tensor consists of.
//
// Most tensors are elements at strides of a storage (Dense), and kernels take them as such. Those
// of another kind hold what they are made of in TensorImpl::form, and an operator takes them only
// with a kernel for that kind (ir/kind_kernels.h), or when it reads nothing but what every tensor
// has (kAnyKind in its record). Otherwise its call raises an error that names both.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace wick {

// Where tensors of several kinds meet in a call, the kernel of the last kind of this list is taken.
enum class TensorKind : uint8_t {
  Dense,
  // Integers at strides that stand for real numbers; `form` is a Quantizer (core/quantizer.h).
  Quantized,
  // Indices and values apart, in coordinates or compressed; `form` is a SparseForm
  // (core/sparse_form.h). No memory at strides.
  Sparse,
  // Tensors of several sizes as one; `form` is a NestedForm (core/nested_form.h). No memory at
  // strides.
  Nested,
};
inline constexpr size_t kNumTensorKinds = 4;

// "sparse", for messages.
constexpr std::string_view toString(TensorKind kind) {
  constexpr std::string_view kNames[kNumTensorKinds] = {"dense", "quantized", "sparse", "nested"};
  return kNames[static_cast<size_t>(kind)];
}

#ifdef WICK_INSIDE
namespace detail {
// Whether the process ever made a tensor that is not dense or not on the CPU: until then calls look
// at no kinds and devices.
inline constinit std::atomic<bool> kinds_in_use{false};
}  // namespace detail

inline bool kindsInUse() {
  return detail::kinds_in_use.load(std::memory_order_relaxed);
}
#endif

}  // namespace wick
