#include "core/dtype.h"

#include <atomic>
#include <ostream>

#include "core/error.h"

namespace wick {

void detail::throwNoDType() {
  throw InternalError(__FILE__, __LINE__, "not a dtype");
}

std::ostream& operator<<(std::ostream& out, DType t) {
  return out << toString(t);
}

std::string_view toString(DType t) {
  switch (t) {
#define WICK_DTYPE(type, name, text, number) \
  case DType::name:                          \
    return text;
    WICK_FORALL_DTYPES(WICK_DTYPE)
    WICK_FORALL_QUANTIZED_DTYPES(WICK_DTYPE)
#undef WICK_DTYPE
  }
  return "unknown";
}

std::string_view scalarTypeName(DType t) {
  switch (t) {
#define WICK_DTYPE(type, name, text, number) \
  case DType::name:                          \
    return #name;
    WICK_FORALL_DTYPES(WICK_DTYPE)
    WICK_FORALL_QUANTIZED_DTYPES(WICK_DTYPE)
#undef WICK_DTYPE
  }
  return "Unknown";
}

std::optional<DType> dtypeFromName(std::string_view name) {
#define WICK_DTYPE(type, symbol, text, number) \
  if (name == text || name == #symbol) return DType::symbol;
  WICK_FORALL_DTYPES(WICK_DTYPE)
  WICK_FORALL_QUANTIZED_DTYPES(WICK_DTYPE)
#undef WICK_DTYPE
  constexpr std::pair<std::string_view, DType> kAliases[] = {{"half", DType::Half},
                                                             {"float", DType::Float},
                                                             {"double", DType::Double},
                                                             {"short", DType::Short},
                                                             {"int", DType::Int},
                                                             {"long", DType::Long},
                                                             {"cfloat", DType::ComplexFloat},
                                                             {"cdouble", DType::ComplexDouble}};
  for (auto [alias, dtype] : kAliases) {
    if (name == alias) return dtype;
  }
  return std::nullopt;
}

std::optional<DType> dtypeFromNumber(int64_t n) {
  switch (n) {
#define WICK_DTYPE(type, name, text, number) \
  case number:                               \
    return DType::name;
    WICK_FORALL_DTYPES(WICK_DTYPE)
#undef WICK_DTYPE
    default:
      return std::nullopt;
  }
}

std::optional<DType> anyDTypeFromNumber(int64_t n) {
#define WICK_DTYPE(type, name, text, number) \
  if (n == (number)) return DType::name;
  WICK_FORALL_QUANTIZED_DTYPES(WICK_DTYPE)
#undef WICK_DTYPE
  return dtypeFromNumber(n);
}

DType toRealType(DType t) {
  if (t == DType::ComplexFloat) return DType::Float;
  if (t == DType::ComplexDouble) return DType::Double;
  return t;
}

DType toComplexType(DType t) {
  if (isComplex(t)) return t;
  return t == DType::Double ? DType::ComplexDouble : DType::ComplexFloat;
}

namespace {

// Rank within the floating and complex category; two half types meet at float.
DType promoteFloats(DType a, DType b) {
  if (a == b) return a;
  if (a == DType::Double || b == DType::Double) return DType::Double;
  return DType::Float;
}

DType promoteIntegers(DType a, DType b) {
  if (a == b) return a;
  if (a == DType::Bool) return b;
  if (b == DType::Bool) return a;
  // uint8 and int8 meet at int16; otherwise the wider one (the numbers are ordered by width).
  if (a == DType::Byte || b == DType::Byte) {
    DType other = a == DType::Byte ? b : a;
    return other == DType::Char ? DType::Short : other;
  }
  return static_cast<int>(a) > static_cast<int>(b) ? a : b;
}

}  // namespace

DType promoteTypes(DType a, DType b) {
  if (a == b) return a;
  if (isQuantized(a) || isQuantized(b)) {
    throwRuntimeError(
        "promoteTypes with quantized numbers is not handled yet; figure out what the "
        "correct rules should be, offending types: {} {}",
        toString(a), toString(b));
  }
  if (isComplex(a) || isComplex(b)) {
    bool wide = a == DType::ComplexDouble || b == DType::ComplexDouble || a == DType::Double ||
                b == DType::Double;
    return wide ? DType::ComplexDouble : DType::ComplexFloat;
  }
  if (isFloating(a) || isFloating(b)) {
    if (!isFloating(a)) return b;
    if (!isFloating(b)) return a;
    return promoteFloats(a, b);
  }
  return promoteIntegers(a, b);
}

bool canCast(DType from, DType to) {
  if (isQuantized(from) != isQuantized(to)) return false;
  if (isComplex(from) && !isComplex(to)) return false;
  if (isFloating(from) && isIntegral(to, true)) return false;
  return !(from != DType::Bool && to == DType::Bool);
}

namespace {
std::atomic<DType> default_dtype{DType::Float};
}  // namespace

DType defaultDType() {
  return default_dtype.load(std::memory_order_relaxed);
}
void setDefaultDType(DType t) {
  default_dtype.store(t, std::memory_order_relaxed);
}

uint16_t detail::halfFromFloat(float f) {
  return Half(f).bits;
}

float detail::floatFromHalf(uint16_t bits) {
  Half half;
  half.bits = bits;
  return half;
}

}  // namespace wick
