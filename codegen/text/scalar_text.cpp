#include "codegen/text/scalar_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "codegen/scalar/float_functions.h"

namespace wick::codegen {

const char* const kIntegerText = R"(template <class T>
WICK_INLINE T wickQuotient(T a, T b) {
  if (b == 0) return 0;
  if (static_cast<T>(-1) < T(1) && b == static_cast<T>(-1)) {
    return static_cast<T>(0ull - static_cast<unsigned long long>(a));
  }
  return static_cast<T>(a / b);
}
template <class T>
WICK_INLINE T wickRest(T a, T b) {
  if (b == 0 || (static_cast<T>(-1) < T(1) && b == static_cast<T>(-1))) return 0;
  return static_cast<T>(a % b);
}
template <class T>
WICK_INLINE long long wickTruncate64(T v) {
  const bool fits = v >= T(-9223372036854775808.0) && v < T(9223372036854775808.0);
  return fits ? static_cast<long long>(v) : static_cast<long long>(0x8000000000000000ull);
}
template <class T>
WICK_INLINE int wickTruncate32(T v) {
  const bool fits = v >= T(-2147483648.0) && v < T(2147483648.0);
  return fits ? static_cast<int>(fits ? v : T(0)) : static_cast<int>(0x80000000u);
}
template <class T>
WICK_INLINE bool wickNegative(T v) { return v < T(1) && v != T(0); }
template <class T>
WICK_INLINE T wickGcd(T a, T b) {
  unsigned long long x = static_cast<unsigned long long>(a), y = static_cast<unsigned long long>(b);
  if (wickNegative(a)) x = 0ull - x;
  if (wickNegative(b)) y = 0ull - y;
  while (y != 0) {
    const unsigned long long rest = x % y;
    x = y;
    y = rest;
  }
  return static_cast<T>(x);
}
template <class T>
WICK_INLINE T wickIntPow(T base, T exponent) {
  if (wickNegative(exponent)) {
    if (base == 1) return 1;
    if (base == static_cast<T>(-1)) return (exponent & 1) != 0 ? static_cast<T>(-1) : T(1);
    return 0;
  }
  unsigned long long result = 1, factor = static_cast<unsigned long long>(base);
  for (; exponent != T(0); exponent = static_cast<T>(exponent >> 1)) {
    if ((exponent & 1) != 0) result *= factor;
    factor *= factor;
  }
  return static_cast<T>(result);
}
)";

std::string_view libraryName(ScalarFunction f) {
  using F = ScalarFunction;
  constexpr F kAll[] = {F::exp2, F::log2,  F::log10, F::sin,   F::cos,   F::tan,   F::asin,
                        F::acos, F::atan,  F::sinh,  F::cosh,  F::asinh, F::acosh, F::atanh,
                        F::erf,  F::erfc,  F::pow,   F::fmod,  F::atan2, F::hypot, F::nextafter,
                        F::sqrt, F::floor, F::ceil,  F::trunc, F::rint};
  return std::ranges::find(kAll, f) != std::end(kAll) ? toString(f) : std::string_view();
}

std::string ScalarText::type(DType type) const {
  switch (type) {
    case DType::Bool:
      return "bool";
    case DType::Byte:
      return words_.byte;
    case DType::Char:
      return words_.signed_byte;
    case DType::Short:
      return words_.short_word;
    case DType::Int:
      return words_.word;
    case DType::Long:
      return words_.long_word;
    case DType::Half:
      return "wickHalf";
    case DType::BFloat16:
      return "wickBFloat";
    case DType::Float:
      return "float";
    case DType::Double:
      return "double";
    default:
      break;
  }
  throw NoText(fmt::format("no {} text for elements of {}", words_.language, toString(type)));
}

std::string ScalarText::cast(DType to, const std::string& value) const {
  return fmt::format("static_cast<{}>({})", type(to), value);
}

std::string ScalarText::convert(const std::string& value, DType from, DType to) const {
  if (from == to) return value;
  if (isReducedFloat(from)) {
    return convert(fmt::format("{}({})", words_.widen, value), DType::Float, to);
  }
  if (to == DType::Bool) return fmt::format("({} != 0)", value);
  if (isReducedFloat(to)) {
    return fmt::format("{}({})", to == DType::Half ? "wickToHalf" : "wickToBFloat",
                       convert(value, from, DType::Float));
  }
  if (isFloating(from) && !isFloating(to)) {
    const bool wide = to == DType::Long || to == DType::Byte;
    return cast(to, fmt::format("wickTruncate{}({})", wide ? 64 : 32, value));
  }
  return cast(to, value);
}

std::string ScalarText::comparedText(const char* sign, const std::string& a, const std::string& b,
                                     DType) const {
  return fmt::format("({} {} {})", a, sign, b);
}

std::string ScalarText::constantText(const ScalarNode& node) const {
  if (node.type == DType::Float || node.type == DType::Double) {
    return floatText(std::bit_cast<double>(node.payload), node.type);
  }
  if (isReducedFloat(node.type)) {
    return convert(floatText(std::bit_cast<double>(node.payload), DType::Float), DType::Float,
                   node.type);
  }
  return integerText(static_cast<int64_t>(node.payload), node.type);
}

// Integers that wrap around, as words without a sign do.
std::string ScalarText::wrappedText(const ScalarNode& node, std::span<const std::string> in) const {
  const bool wide = node.type == DType::Long;
  const char* word = wide ? words_.unsigned_long : words_.unsigned_word;
  const auto wrapped = [&](const char* sign) {
    return cast(node.type, fmt::format("static_cast<{0}>({1}) {2} static_cast<{0}>({3})", word,
                                       in[0], sign, in[1]));
  };
  const auto negated = [&] {
    return cast(node.type, fmt::format("0u - static_cast<{}>({})", word, in[0]));
  };
  switch (node.op) {
    case ScalarOp::Add:
      return wrapped("+");
    case ScalarOp::Sub:
      return wrapped("-");
    case ScalarOp::Mul:
      return wrapped("*");
    case ScalarOp::IntDiv:
      return fmt::format("wickQuotient<{}>({}, {})", type(node.type), in[0], in[1]);
    case ScalarOp::IntRem:
      return fmt::format("wickRest<{}>({}, {})", type(node.type), in[0], in[1]);
    case ScalarOp::Neg:
      return negated();
    case ScalarOp::Abs:
      return fmt::format("({0} < 0 ? {1} : {0})", in[0], negated());
    case ScalarOp::ShiftLeft:
      return cast(node.type, fmt::format("static_cast<{}>({}) << ({} & {})", word, in[0], in[1],
                                         wide ? 63 : 31));
    case ScalarOp::ShiftRight:
      return cast(node.type, fmt::format("{} >> ({} & {})", in[0], in[1], wide ? 63 : 31));
    default:
      break;
  }
  throw NoText(
      fmt::format("no {} text for {} of {}", words_.language, toString(node.op), type(node.type)));
}

std::string ScalarText::text(const ScalarNode& node, std::span<const std::string> operands,
                             std::span<const DType> types) const {
  const bool is_float = isFloating(node.type);
  const bool single = node.type == DType::Float;
  const auto infix = [&](const char* sign) {
    return fmt::format("({} {} {})", operands[0], sign, operands[1]);
  };
  const auto join = [](std::span<const std::string> parts) {
    return fmt::format("{}", fmt::join(parts, ", "));
  };
  const auto builtin = [&](const char* name) {
    return fmt::format("{}{}{}({})", words_.builtin, name, single ? "f" : "", join(operands));
  };
  switch (node.op) {
    case ScalarOp::Constant:
      return constantText(node);
    case ScalarOp::Add:
      return is_float ? infix("+") : wrappedText(node, operands);
    case ScalarOp::Sub:
      return is_float ? infix("-") : wrappedText(node, operands);
    case ScalarOp::Mul:
      return is_float ? infix("*") : wrappedText(node, operands);
    case ScalarOp::Div:
      return infix("/");
    case ScalarOp::IntDiv:
    case ScalarOp::IntRem:
    case ScalarOp::ShiftLeft:
    case ScalarOp::ShiftRight:
      return wrappedText(node, operands);
    case ScalarOp::Neg:
      return is_float ? fmt::format("(-{})", operands[0]) : wrappedText(node, operands);
    case ScalarOp::Abs:
      return is_float ? builtin("fabs") : wrappedText(node, operands);
    case ScalarOp::Fma:
      return builtin("fma");
    case ScalarOp::Eq:
      if (isReducedFloat(types[0])) {
        return fmt::format("({0}({1}) == {0}({2}))", words_.widen, operands[0], operands[1]);
      }
      return infix("==");
    case ScalarOp::Lt:
      return comparedText("<", operands[0], operands[1], types[0]);
    case ScalarOp::Le:
      return comparedText("<=", operands[0], operands[1], types[0]);
    case ScalarOp::SignBit:
      return fmt::format(
          "({} < 0)", bitsText(operands[0], types[0] == DType::Double ? DType::Long : DType::Int));
    case ScalarOp::And:
    case ScalarOp::Or:
    case ScalarOp::Xor: {
      const char sign = node.op == ScalarOp::And ? '&' : node.op == ScalarOp::Or ? '|' : '^';
      if (node.type == DType::Bool) {
        return fmt::format("((static_cast<int>({}) {} static_cast<int>({})) != 0)", operands[0],
                           sign, operands[1]);
      }
      return cast(node.type, fmt::format("{} {} {}", operands[0], sign, operands[1]));
    }
    case ScalarOp::Not:
      if (node.type == DType::Bool) return fmt::format("(!{})", operands[0]);
      return cast(node.type, "~" + operands[0]);
    case ScalarOp::Select:
      return fmt::format("({} ? {} : {})", operands[0], operands[1], operands[2]);
    case ScalarOp::Convert:
      return convert(operands[0], types[0], node.type);
    case ScalarOp::Bits:
      return bitsText(operands[0], node.type);
    case ScalarOp::Sqrt:
      return builtin("sqrt");
    case ScalarOp::Floor:
      return builtin("floor");
    case ScalarOp::Ceil:
      return builtin("ceil");
    case ScalarOp::Trunc:
      return builtin("trunc");
    case ScalarOp::Rint:
      return builtin("rint");
    case ScalarOp::Copysign:
      return builtin("copysign");
    case ScalarOp::Scale:
      return fmt::format("wickScale{}({})", single ? "Float" : "Double", join(operands));
    case ScalarOp::Lookup:
      return lookupText(node.payload,
                        fmt::format("{} & {}", operands[0], floats::kFloatTableSize - 1));
    case ScalarOp::Call:
      return callText(node, join(operands));
    case ScalarOp::Input:
      break;
  }
  throw NoText(fmt::format("no {} text for {}", words_.language, toString(node.op)));
}

}  // namespace wick::codegen
