#include "codegen/cuda/scalar_text.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <set>

#include "codegen/cuda/special_text.h"

namespace wick::codegen {

namespace {

// Of float32 and float64: all bits are kept.
std::string floatText(double value, DType type) {
  if (type == DType::Double) {
    return fmt::format("__longlong_as_double({:#x}ll)", std::bit_cast<uint64_t>(value));
  }
  return fmt::format("__int_as_float({:#x})", std::bit_cast<uint32_t>(static_cast<float>(value)));
}

std::string constantText(const ScalarNode& node) {
  if (node.type == DType::Float || node.type == DType::Double) {
    return floatText(std::bit_cast<double>(node.payload), node.type);
  }
  if (isReducedFloat(node.type)) {
    return cudaConvert(floatText(std::bit_cast<double>(node.payload), DType::Float), DType::Float,
                       node.type);
  }
  // The least number has no literal of its own.
  return fmt::format("(({})(long long){:#x}ull)", cudaType(node.type), node.payload);
}

// The function's name for doubles; null for those that have no text.
const char* functionName(ScalarFunction f) {
  using F = ScalarFunction;
  switch (f) {
    case F::exp2:
      return "exp2";
    case F::log2:
      return "log2";
    case F::log10:
      return "log10";
    case F::sin:
      return "sin";
    case F::cos:
      return "cos";
    case F::tan:
      return "tan";
    case F::asin:
      return "asin";
    case F::acos:
      return "acos";
    case F::atan:
      return "atan";
    case F::sinh:
      return "sinh";
    case F::cosh:
      return "cosh";
    case F::asinh:
      return "asinh";
    case F::acosh:
      return "acosh";
    case F::atanh:
      return "atanh";
    case F::erfc:
      return "erfc";
    case F::erfcx:
      return "erfcx";
    case F::erfinv:
      return "erfinv";
    case F::lgamma:
      return "lgamma";
    case F::i0:
      return "wickI0";
    case F::i1:
      return "wickI1";
    case F::besselJ0:
      return "::j0";
    case F::besselJ1:
      return "::j1";
    case F::besselY0:
      return "::y0";
    case F::besselY1:
      return "::y1";
    case F::exp:
      return "exp";
    case F::expm1:
      return "expm1";
    case F::log:
      return "log";
    case F::log1p:
      return "log1p";
    case F::tanh:
      return "tanh";
    case F::erf:
      return "erf";
    case F::sqrt:
      return "sqrt";
    case F::floor:
      return "floor";
    case F::ceil:
      return "ceil";
    case F::trunc:
      return "trunc";
    case F::rint:
      return "rint";
    case F::pow:
      return "pow";
    case F::fmod:
      return "fmod";
    case F::atan2:
      return "atan2";
    case F::hypot:
      return "hypot";
    case F::nextafter:
      return "nextafter";
    case F::copysign:
      return "copysign";
    default:
      return nullptr;
  }
}

std::string callText(const ScalarNode& node, std::span<const std::string> in) {
  using F = ScalarFunction;
  const std::string arguments = in.size() == 1 ? in[0] : fmt::format("{}, {}", in[0], in[1]);
  switch (node.function) {
    case F::rsqrt:
      if (node.type == DType::Float) return fmt::format("rsqrtf({})", in[0]);
      return fmt::format("({0})1 / sqrt({1})", cudaType(node.type), in[0]);
    case F::sigmoid:
      return fmt::format("({0})1 / (({0})1 + exp(-{1}))", cudaType(node.type), in[0]);
    case F::gcd:
      return fmt::format("wickGcd({})", arguments);
    case F::intPow:
      return fmt::format("wickIntPow({})", arguments);
    case F::i0e:
      return fmt::format("({})wickScaledBessel(0, {})", cudaType(node.type), in[0]);
    case F::i1e:
      return fmt::format("({})wickScaledBessel(1, {})", cudaType(node.type), in[0]);
    default:
      break;
  }
  if (std::string call = specialCall(node.function, cudaType(node.type), arguments);
      !call.empty()) {
    return call;
  }
  const char* name = functionName(node.function);
  if (!name) {
    throw NoCudaText(fmt::format("no CUDA text for the function {}", toString(node.function)));
  }
  return fmt::format("{}{}({})", name, node.type == DType::Float ? "f" : "", arguments);
}

std::string integerText(const ScalarNode& node, std::span<const std::string> in) {
  const std::string type = cudaType(node.type);
  const bool wide = node.type == DType::Long;
  const char* word = wide ? "unsigned long long" : "unsigned";
  const auto wrapped = [&](char sign) {
    return fmt::format("(({0})(({1}){2} {3} ({1}){4}))", type, word, in[0], sign, in[1]);
  };
  switch (node.op) {
    case ScalarOp::Add:
      return wrapped('+');
    case ScalarOp::Sub:
      return wrapped('-');
    case ScalarOp::Mul:
      return wrapped('*');
    case ScalarOp::IntDiv:
      return fmt::format("wickDiv<{}>({}, {})", type, in[0], in[1]);
    case ScalarOp::IntRem:
      return fmt::format("wickRem<{}>({}, {})", type, in[0], in[1]);
    case ScalarOp::Neg:
      return fmt::format("(({0})(({1})0 - ({1}){2}))", type, word, in[0]);
    case ScalarOp::Abs:
      return fmt::format("({2} < 0 ? ({0})(({1})0 - ({1}){2}) : {2})", type, word, in[0]);
    case ScalarOp::ShiftLeft:
      return fmt::format("(({0})(({1}){2} << ({3} & {4})))", type, word, in[0], in[1],
                         wide ? 63 : 31);
    case ScalarOp::ShiftRight:
      return fmt::format("(({0})({1} >> ({2} & {3})))", type, in[0], in[1], wide ? 63 : 31);
    default:
      break;
  }
  throw NoCudaText(fmt::format("no CUDA text for {} of {}", toString(node.op), type));
}

constexpr const char* kPreamble = R"(
struct wickHalf { unsigned short bits; };
struct wickBFloat { unsigned short bits; };
__device__ __forceinline__ float wickToFloat(wickHalf h) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h.bits));
  return f;
}
__device__ __forceinline__ float wickToFloat(wickBFloat h) {
  return __uint_as_float((unsigned)h.bits << 16);
}
__device__ __forceinline__ wickHalf wickToHalf(float f) {
  wickHalf h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.bits) : "f"(f));
  return h;
}
__device__ __forceinline__ wickBFloat wickToBFloat(float f) {
#if __CUDA_ARCH__ >= 800
  wickBFloat h;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h.bits) : "f"(f));
  return h;
#else
  const unsigned bits = __float_as_uint(f);
  const unsigned rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return {(unsigned short)(f != f ? 0x7fc0u : rounded)};
#endif
}
template <class T> __device__ __forceinline__ T wickDiv(T a, T b) {
  if (b == 0) return 0;
  if (b == (T)-1 && (T)-1 < 0) return (T)(0ull - (unsigned long long)a);
  return (T)(a / b);
}
template <class T> __device__ __forceinline__ T wickRem(T a, T b) {
  if (b == 0) return 0;
  if (b == (T)-1 && (T)-1 < 0) return 0;
  return (T)(a % b);
}
template <class T> __device__ __forceinline__ long long wickTruncate64(T v) {
  const bool fits = v >= (T)-9223372036854775808.0 && v < (T)9223372036854775808.0;
  return fits ? (long long)v : (long long)0x8000000000000000ull;
}
template <class T> __device__ __forceinline__ int wickTruncate32(T v) {
  const bool fits = v >= (T)-2147483648.0 && v < (T)2147483648.0;
  return fits ? (int)v : (int)0x80000000u;
}
__device__ __forceinline__ float wickScale(float v, float n) {
  const float magic = 12582912.0f;
  const int e = __float_as_int(n + magic) - __float_as_int(magic);
  const int h = e >> 1;
  return v * __int_as_float((h + 127) << 23) * __int_as_float((e - h + 127) << 23);
}
)";

constexpr const char* kIntegerFunctions = R"(
template <class T> __device__ T wickGcd(T a, T b) {
  unsigned long long x = (unsigned long long)a, y = (unsigned long long)b;
  if (a < 0) x = 0ull - x;
  if (b < 0) y = 0ull - y;
  while (y != 0) {
    const unsigned long long rest = x % y;
    x = y;
    y = rest;
  }
  return (T)x;
}
template <class T> __device__ T wickIntPow(T base, T exponent) {
  if (exponent < 0) {
    if (base == 1) return 1;
    if (base == (T)-1) return (exponent & 1) != 0 ? (T)-1 : (T)1;
    return 0;
  }
  unsigned long long result = 1, factor = (unsigned long long)base;
  for (; exponent > 0; exponent = (T)(exponent >> 1)) {
    if ((exponent & 1) != 0) result *= factor;
    factor *= factor;
  }
  return (T)result;
}
)";

// Infinity gives NaN, as in PyTorch's formulas, which divide it by itself.
constexpr const char* kBessel = R"(
__device__ inline float wickI0f(float x) { return x - x == 0 ? cyl_bessel_i0f(x) : x - x; }
__device__ inline double wickI0(double x) { return x - x == 0 ? cyl_bessel_i0(x) : x - x; }
__device__ inline float wickI1f(float x) { return x - x == 0 ? cyl_bessel_i1f(x) : x - x; }
__device__ inline double wickI1(double x) { return x - x == 0 ? cyl_bessel_i1(x) : x - x; }
)";

// I_order(x) e^-|x|: by the product where that neither overflows nor vanishes, else by Hankel's series.
constexpr const char* kScaledBessel = R"(
__device__ double wickScaledBessel(int order, double x) {
  const double a = fabs(x);
  double value;
  if (a <= 500.0) {
    value = (order == 0 ? cyl_bessel_i0(a) : cyl_bessel_i1(a)) * exp(-a);
  } else {
    const double mu = 4.0 * order * order;
    double term = 1, sum = 1;
    for (int k = 1; k < 8; ++k) {
      const double odd = 2.0 * k - 1;
      term *= -(mu - odd * odd) / (k * 8 * a);
      sum += term;
    }
    value = sum / sqrt(6.283185307179586477 * a);
  }
  return order == 1 && x < 0 ? -value : value;
}
)";

}  // namespace

std::string cudaType(DType type) {
  switch (type) {
    case DType::Bool:
      return "bool";
    case DType::Byte:
      return "unsigned char";
    case DType::Char:
      return "signed char";
    case DType::Short:
      return "short";
    case DType::Int:
      return "int";
    case DType::Long:
      return "long long";
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
  throw NoCudaText(fmt::format("no CUDA text for elements of {}", toString(type)));
}

std::string cudaFromBits(const std::string& value, DType type) {
  switch (type) {
    case DType::Half:
    case DType::BFloat16:
      return fmt::format("{}{{(unsigned short){}}}", cudaType(type), value);
    case DType::Float:
      return fmt::format("__int_as_float((int){})", value);
    case DType::Double:
      return fmt::format("__longlong_as_double({})", value);
    case DType::Bool:
      return fmt::format("((({}) & 255) != 0)", value);
    default:
      return fmt::format("(({}){})", cudaType(type), value);
  }
}

std::string cudaConvert(const std::string& value, DType from, DType to) {
  if (from == to) return value;
  if (isReducedFloat(from)) {
    return cudaConvert(fmt::format("wickToFloat({})", value), DType::Float, to);
  }
  if (to == DType::Bool) return fmt::format("({} != 0)", value);
  if (isReducedFloat(to)) {
    return fmt::format("{}({})", to == DType::Half ? "wickToHalf" : "wickToBFloat",
                       cudaConvert(value, from, DType::Float));
  }
  if (isFloating(from) && !isFloating(to)) {
    const bool wide = to == DType::Long || to == DType::Byte;
    return fmt::format("(({})wickTruncate{}({}))", cudaType(to), wide ? 64 : 32, value);
  }
  return fmt::format("(({}){})", cudaType(to), value);
}

std::string cudaText(const ScalarNode& node, std::span<const std::string> in,
                     std::span<const DType> types) {
  const bool is_float = isFloating(node.type);
  const bool single = node.type == DType::Float;
  const auto infix = [&](const char* sign) {
    return fmt::format("({} {} {})", in[0], sign, in[1]);
  };
  const auto function = [&](const char* name) {
    return fmt::format("{}{}({})", name, single ? "f" : "", in[0]);
  };
  switch (node.op) {
    case ScalarOp::Constant:
      return constantText(node);
    case ScalarOp::Add:
      return is_float ? infix("+") : integerText(node, in);
    case ScalarOp::Sub:
      return is_float ? infix("-") : integerText(node, in);
    case ScalarOp::Mul:
      return is_float ? infix("*") : integerText(node, in);
    case ScalarOp::Div:
      return infix("/");
    case ScalarOp::IntDiv:
    case ScalarOp::IntRem:
    case ScalarOp::ShiftLeft:
    case ScalarOp::ShiftRight:
      return integerText(node, in);
    case ScalarOp::Neg:
      return is_float ? fmt::format("(-{})", in[0]) : integerText(node, in);
    case ScalarOp::Abs:
      return is_float ? function("fabs") : integerText(node, in);
    case ScalarOp::Fma:
      return fmt::format("fma{}({}, {}, {})", single ? "f" : "", in[0], in[1], in[2]);
    case ScalarOp::Eq:
      if (isReducedFloat(types[0])) {
        return fmt::format("(wickToFloat({}) == wickToFloat({}))", in[0], in[1]);
      }
      return infix("==");
    case ScalarOp::Lt:
      return infix("<");
    case ScalarOp::Le:
      return infix("<=");
    case ScalarOp::SignBit:
      return types[0] == DType::Double ? fmt::format("(__double_as_longlong({}) < 0)", in[0])
                                       : fmt::format("(__float_as_int({}) < 0)", in[0]);
    case ScalarOp::And:
    case ScalarOp::Or:
    case ScalarOp::Xor: {
      const char sign = node.op == ScalarOp::And ? '&' : node.op == ScalarOp::Or ? '|' : '^';
      return fmt::format("(({})({} {} {}))", cudaType(node.type), in[0], sign, in[1]);
    }
    case ScalarOp::Not:
      if (node.type == DType::Bool) return fmt::format("(!{})", in[0]);
      return fmt::format("(({})~{})", cudaType(node.type), in[0]);
    case ScalarOp::Select:
      return fmt::format("({} ? {} : {})", in[0], in[1], in[2]);
    case ScalarOp::Convert:
      return cudaConvert(in[0], types[0], node.type);
    case ScalarOp::Bits:
      if (node.type == DType::Double) return fmt::format("__longlong_as_double({})", in[0]);
      if (node.type == DType::Long) return fmt::format("__double_as_longlong({})", in[0]);
      return fmt::format("{}({})", single ? "__int_as_float" : "__float_as_int", in[0]);
    case ScalarOp::Sqrt:
      return function("sqrt");
    case ScalarOp::Floor:
      return function("floor");
    case ScalarOp::Ceil:
      return function("ceil");
    case ScalarOp::Trunc:
      return function("trunc");
    case ScalarOp::Rint:
      return function("rint");
    case ScalarOp::Copysign:
      return fmt::format("copysign{}({}, {})", single ? "f" : "", in[0], in[1]);
    case ScalarOp::Scale:
      return fmt::format("wickScale({}, {})", in[0], in[1]);
    case ScalarOp::Lookup:
      return fmt::format("__int_as_float(wickTable{}[{} & {}])", node.payload, in[0],
                         floats::kFloatTableSize - 1);
    case ScalarOp::Call:
      return callText(node, in);
    case ScalarOp::Input:
      break;
  }
  throw NoCudaText(fmt::format("no CUDA text for {}", toString(node.op)));
}

std::string cudaPreamble(const Expression& expression) {
  std::string text = kPreamble + specialPreamble(expression);
  std::set<uint64_t> tables;
  bool integers = false, bessel = false, scaled_bessel = false;
  for (const ScalarNode& node : expression.nodes()) {
    if (node.op == ScalarOp::Lookup) tables.insert(node.payload);
    if (node.op != ScalarOp::Call) continue;
    const ScalarFunction f = node.function;
    integers = integers || f == ScalarFunction::gcd || f == ScalarFunction::intPow;
    bessel = bessel || f == ScalarFunction::i0 || f == ScalarFunction::i1;
    scaled_bessel = scaled_bessel || f == ScalarFunction::i0e || f == ScalarFunction::i1e;
  }
  if (integers) text += kIntegerFunctions;
  if (bessel) text += kBessel;
  if (scaled_bessel) text += kScaledBessel;
  for (const uint64_t table : tables) {
    text +=
        fmt::format("__device__ const int wickTable{}[{}] = {{", table, floats::kFloatTableSize);
    for (const float value : floats::valuesOf(static_cast<floats::FloatTable>(table))) {
      text += fmt::format("(int){:#x}u, ", std::bit_cast<uint32_t>(value));
    }
    text += "};\n";
  }
  return text;
}

}  // namespace wick::codegen
