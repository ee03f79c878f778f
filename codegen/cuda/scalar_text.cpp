#include "codegen/cuda/scalar_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <utility>

#include "codegen/cuda/special_text.h"

namespace wick::codegen {

namespace {

// The function's name for doubles; empty for those that have no text.
std::string_view functionName(ScalarFunction f) {
  using F = ScalarFunction;
  constexpr std::pair<F, std::string_view> kOwn[] = {{F::i0, "wickI0"},     {F::i1, "wickI1"},
                                                     {F::besselJ0, "::j0"}, {F::besselJ1, "::j1"},
                                                     {F::besselY0, "::y0"}, {F::besselY1, "::y1"}};
  constexpr F kLikeHere[] = {F::erfcx, F::erfinv, F::lgamma, F::exp,     F::expm1,
                             F::log,   F::log1p,  F::tanh,   F::copysign};
  for (const auto& [function, name] : kOwn) {
    if (function == f) return name;
  }
  return std::ranges::find(kLikeHere, f) != std::end(kLikeHere) ? toString(f) : libraryName(f);
}

class CudaText final : public ScalarText {
 public:
  CudaText()
      : ScalarText({.language = "CUDA",
                    .byte = "unsigned char",
                    .signed_byte = "signed char",
                    .short_word = "short",
                    .word = "int",
                    .long_word = "long long",
                    .unsigned_word = "unsigned",
                    .unsigned_long = "unsigned long long",
                    .builtin = "",
                    .widen = "wickToFloat"}) {}

 private:
  std::string floatText(double value, DType type) const override {
    if (type == DType::Double) {
      return fmt::format("__longlong_as_double({:#x}ll)", std::bit_cast<uint64_t>(value));
    }
    return fmt::format("__int_as_float({:#x})", std::bit_cast<uint32_t>(static_cast<float>(value)));
  }
  // The least number has no literal of its own.
  std::string integerText(int64_t value, DType type) const override {
    return fmt::format("(({})(long long){:#x}ull)", cudaType(type), static_cast<uint64_t>(value));
  }
  std::string bitsText(const std::string& value, DType to) const override {
    const char* function = to == DType::Double  ? "__longlong_as_double"
                           : to == DType::Long  ? "__double_as_longlong"
                           : to == DType::Float ? "__int_as_float"
                                                : "__float_as_int";
    return fmt::format("{}({})", function, value);
  }
  std::string lookupText(uint64_t table, const std::string& index) const override {
    return fmt::format("__int_as_float(wickTable{}[{}])", table, index);
  }
  std::string callText(const ScalarNode& node, const std::string& arguments) const override {
    using F = ScalarFunction;
    const std::string type = cudaType(node.type);
    switch (node.function) {
      case F::rsqrt:
        if (node.type == DType::Float) return fmt::format("rsqrtf({})", arguments);
        return fmt::format("({0})1 / sqrt({1})", type, arguments);
      case F::sigmoid:
        return fmt::format("({0})1 / (({0})1 + exp(-{1}))", type, arguments);
      case F::gcd:
        return fmt::format("wickGcd({})", arguments);
      case F::intPow:
        return fmt::format("wickIntPow({})", arguments);
      case F::i0e:
        return fmt::format("({})wickScaledBessel(0, {})", type, arguments);
      case F::i1e:
        return fmt::format("({})wickScaledBessel(1, {})", type, arguments);
      default:
        break;
    }
    if (std::string call = specialCall(node.function, type, arguments); !call.empty()) {
      return call;
    }
    const std::string_view name = functionName(node.function);
    if (name.empty()) {
      throw NoCudaText(fmt::format("no CUDA text for the function {}", toString(node.function)));
    }
    return fmt::format("{}{}({})", name, node.type == DType::Float ? "f" : "", arguments);
  }
};
const CudaText kText;

constexpr const char* kScalarTextPreamble = R"(
#define WICK_INLINE __device__ __forceinline__
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
__device__ __forceinline__ float wickScaleFloat(float v, float n) {
  const float magic = 12582912.0f;
  const int e = __float_as_int(n + magic) - __float_as_int(magic);
  const int h = e >> 1;
  return v * __int_as_float((h + 127) << 23) * __int_as_float((e - h + 127) << 23);
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
  return kText.type(type);
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
  return kText.convert(value, from, to);
}

std::string cudaText(const ScalarNode& node, std::span<const std::string> operands,
                     std::span<const DType> types) {
  return kText.text(node, operands, types);
}

std::string cudaPreamble(const Expression& expression) {
  std::string text = std::string(kScalarTextPreamble) + kIntegerText + specialPreamble(expression);
  std::set<uint64_t> tables;
  bool bessel = false, scaled_bessel = false;
  for (const ScalarNode& node : expression.nodes()) {
    if (node.op == ScalarOp::Lookup) tables.insert(node.payload);
    if (node.op != ScalarOp::Call) continue;
    const ScalarFunction f = node.function;
    bessel = bessel || f == ScalarFunction::i0 || f == ScalarFunction::i1;
    scaled_bessel = scaled_bessel || f == ScalarFunction::i0e || f == ScalarFunction::i1e;
  }
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
