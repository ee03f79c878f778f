// The element types of tensors. The numbers are PyTorch's, because TorchScript programs carry a
// dtype as an int.
#pragma once

#include <array>
#include <complex>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string_view>

#include "core/half.h"

#pragma GCC visibility push(default)

namespace wick {

// _(C++ type, enumerator, name in torch, number)
#define WICK_FORALL_DTYPES(_)                              \
  _(uint8_t, Byte, "uint8", 0)                             \
  _(int8_t, Char, "int8", 1)                               \
  _(int16_t, Short, "int16", 2)                            \
  _(int32_t, Int, "int32", 3)                              \
  _(int64_t, Long, "int64", 4)                             \
  _(::wick::Half, Half, "float16", 5)                      \
  _(float, Float, "float32", 6)                            \
  _(double, Double, "float64", 7)                          \
  _(std::complex<float>, ComplexFloat, "complex64", 9)     \
  _(std::complex<double>, ComplexDouble, "complex128", 10) \
  _(bool, Bool, "bool", 11)                                \
  _(::wick::BFloat16, BFloat16, "bfloat16", 15)

// Integers that stand for real numbers, in tensors that say by what rule (core/quantizer.h). No
// kernel for the dtypes above takes them. The C++ type is the integer's; of quint4x2 a byte holds
// two.
#define WICK_FORALL_QUANTIZED_DTYPES(_) \
  _(int8_t, QInt8, "qint8", 12)         \
  _(uint8_t, QUInt8, "quint8", 13)      \
  _(int32_t, QInt32, "qint32", 14)      \
  _(uint8_t, QUInt4x2, "quint4x2", 16)

enum class DType : int8_t {
#define WICK_DTYPE(type, name, text, number) name = number,
  WICK_FORALL_DTYPES(WICK_DTYPE) WICK_FORALL_QUANTIZED_DTYPES(WICK_DTYPE)
#undef WICK_DTYPE
};

template <class T>
struct DTypeOf;
#define WICK_DTYPE(type, name, text, number)    \
  template <>                                   \
  struct DTypeOf<type> {                        \
    static constexpr DType value = DType::name; \
  };
WICK_FORALL_DTYPES(WICK_DTYPE)
#undef WICK_DTYPE
template <class T>
inline constexpr DType kDTypeOf = DTypeOf<T>::value;

namespace detail {
inline constexpr std::array<uint8_t, 17> kItemSizes = [] {
  std::array<uint8_t, 17> sizes{};
#define WICK_DTYPE(type, name, text, number) sizes[number] = sizeof(type);
  WICK_FORALL_DTYPES(WICK_DTYPE)
  WICK_FORALL_QUANTIZED_DTYPES(WICK_DTYPE)
#undef WICK_DTYPE
      return sizes;
}();
[[noreturn]] void throwNoDType();
}  // namespace detail

// In bytes: a power of two.
inline size_t itemSize(DType t) {
  const auto number = static_cast<size_t>(t);
  if (number < detail::kItemSizes.size() && detail::kItemSizes[number] != 0) [[likely]] {
    return detail::kItemSizes[number];
  }
  detail::throwNoDType();
}
// "float32".
std::string_view toString(DType t);
std::ostream& operator<<(std::ostream& out, DType t);  // toString()
// "Float": the name in printed types and storages ("FloatStorage").
std::string_view scalarTypeName(DType t);
// The inverse of both names; nullopt for an unknown one.
std::optional<DType> dtypeFromName(std::string_view name);
// The inverse of the number; nullopt for numbers that are no dtype of dense tensors.
std::optional<DType> dtypeFromNumber(int64_t number);
// The same with the quantized ones.
std::optional<DType> anyDTypeFromNumber(int64_t number);

inline bool isComplex(DType t) {
  return t == DType::ComplexFloat || t == DType::ComplexDouble;
}
inline bool isFloating(DType t) {
  return t == DType::Half || t == DType::Float || t == DType::Double || t == DType::BFloat16;
}
inline bool isQuantized(DType t) {
  return (static_cast<int>(t) >= 12 && static_cast<int>(t) <= 14) || t == DType::QUInt4x2;
}
inline bool isIntegral(DType t, bool include_bool) {
  return (static_cast<int>(t) >= 0 && static_cast<int>(t) <= 4) ||
         (include_bool && t == DType::Bool);
}
inline bool isReducedFloat(DType t) {
  return t == DType::Half || t == DType::BFloat16;
}
// The real type of a complex one (complex64 -> float32); others are returned as they are.
DType toRealType(DType t);
// The complex type of a floating one (float64 -> complex128, else complex64).
DType toComplexType(DType t);
// The smallest dtype that both convert to without changing category (PyTorch's promotion table).
DType promoteTypes(DType a, DType b);
// Whether PyTorch lets a result of dtype `from` be written into a tensor of dtype `to`.
bool canCast(DType from, DType to);

// The dtype that factories and float literals use: a process-wide setting, float32 unless changed.
DType defaultDType();
void setDefaultDType(DType t);

}  // namespace wick

#pragma GCC visibility pop
