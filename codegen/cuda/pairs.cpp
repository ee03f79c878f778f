#include "codegen/cuda/pairs.h"

#include <fmt/format.h>

#include <bit>

#include "core/half.h"

namespace wick::codegen {

namespace {

// Devices that lack an instruction compute each half by itself.
constexpr const char* kPreamble = R"(
struct wickHalf2 { unsigned bits; };
struct wickBFloat2 { unsigned bits; };
__device__ __forceinline__ wickHalf wickLow(wickHalf2 p) { return {(unsigned short)p.bits}; }
__device__ __forceinline__ wickHalf wickHigh(wickHalf2 p) { return {(unsigned short)(p.bits >> 16)}; }
__device__ __forceinline__ wickBFloat wickLow(wickBFloat2 p) { return {(unsigned short)p.bits}; }
__device__ __forceinline__ wickBFloat wickHigh(wickBFloat2 p) {
  return {(unsigned short)(p.bits >> 16)};
}
__device__ __forceinline__ wickHalf2 wickPair(wickHalf a, wickHalf b) {
  return {a.bits | (unsigned)b.bits << 16};
}
__device__ __forceinline__ wickBFloat2 wickPair(wickBFloat a, wickBFloat b) {
  return {a.bits | (unsigned)b.bits << 16};
}
__device__ __forceinline__ wickHalf2 wickToHalf2(float a, float b) {
#if __CUDA_ARCH__ >= 800
  wickHalf2 p;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(p.bits) : "f"(b), "f"(a));
  return p;
#else
  return wickPair(wickToHalf(a), wickToHalf(b));
#endif
}
__device__ __forceinline__ wickBFloat2 wickToBFloat2(float a, float b) {
#if __CUDA_ARCH__ >= 800
  wickBFloat2 p;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(p.bits) : "f"(b), "f"(a));
  return p;
#else
  return wickPair(wickToBFloat(a), wickToBFloat(b));
#endif
}
#if __CUDA_ARCH__ >= 800
#define WICK_HALF_PAIRS(name, instruction, sign)                                           \
  __device__ __forceinline__ wickHalf2 name(wickHalf2 a, wickHalf2 b) {                    \
    wickHalf2 p;                                                                           \
    asm(instruction ".rn.f16x2 %0, %1, %2;" : "=r"(p.bits) : "r"(a.bits), "r"(b.bits));    \
    return p;                                                                              \
  }
#else
#define WICK_HALF_PAIRS(name, instruction, sign)                                           \
  __device__ __forceinline__ wickHalf2 name(wickHalf2 a, wickHalf2 b) {                    \
    return wickToHalf2(wickToFloat(wickLow(a)) sign wickToFloat(wickLow(b)),               \
                       wickToFloat(wickHigh(a)) sign wickToFloat(wickHigh(b)));            \
  }
#endif
#if __CUDA_ARCH__ >= 900
#define WICK_BFLOAT_PAIRS(name, instruction, sign)                                         \
  __device__ __forceinline__ wickBFloat2 name(wickBFloat2 a, wickBFloat2 b) {              \
    wickBFloat2 p;                                                                         \
    asm(instruction ".rn.bf16x2 %0, %1, %2;" : "=r"(p.bits) : "r"(a.bits), "r"(b.bits));   \
    return p;                                                                              \
  }
#else
#define WICK_BFLOAT_PAIRS(name, instruction, sign)                                         \
  __device__ __forceinline__ wickBFloat2 name(wickBFloat2 a, wickBFloat2 b) {              \
    return wickToBFloat2(wickToFloat(wickLow(a)) sign wickToFloat(wickLow(b)),             \
                         wickToFloat(wickHigh(a)) sign wickToFloat(wickHigh(b)));          \
  }
#endif
WICK_HALF_PAIRS(wickAdd, "add", +)
WICK_HALF_PAIRS(wickSub, "sub", -)
WICK_HALF_PAIRS(wickMul, "mul", *)
WICK_BFLOAT_PAIRS(wickAdd, "add", +)
WICK_BFLOAT_PAIRS(wickSub, "sub", -)
WICK_BFLOAT_PAIRS(wickMul, "mul", *)
template <class P> __device__ __forceinline__ P wickNeg(P a) { return {a.bits ^ 0x80008000u}; }
template <class P> __device__ __forceinline__ P wickAbs(P a) { return {a.bits & 0x7fff7fffu}; }
)";

const char* functionOf(ScalarOp op) {
  switch (op) {
    case ScalarOp::Add:
      return "wickAdd";
    case ScalarOp::Sub:
      return "wickSub";
    case ScalarOp::Mul:
      return "wickMul";
    case ScalarOp::Neg:
      return "wickNeg";
    case ScalarOp::Abs:
      return "wickAbs";
    default:
      return nullptr;
  }
}

// A float32 operand that is a number of the reduced dtype.
std::optional<std::string> operandText(const Expression& expression, ScalarExpr e, DType type) {
  const ScalarNode& node = expression[e];
  if (node.op == ScalarOp::Convert && expression[node.operands[0]].type == type) {
    return fmt::format("n{}", node.operands[0].id);
  }
  if (node.op != ScalarOp::Constant) return std::nullopt;
  const auto value = static_cast<float>(std::bit_cast<double>(node.payload));
  const auto literal = [&](auto reduced) -> std::optional<std::string> {
    if (static_cast<float>(reduced) != value) return std::nullopt;
    return fmt::format("{}{{{:#x}u}}", pairType(type), uint32_t{reduced.bits} * 0x10001u);
  };
  return type == DType::Half ? literal(Half(value)) : literal(BFloat16(value));
}

}  // namespace

std::string pairType(DType type) {
  return type == DType::Half ? "wickHalf2" : "wickBFloat2";
}

std::string pairPreamble() {
  return kPreamble;
}

std::optional<std::string> pairText(const Expression& expression, ScalarExpr e) {
  const ScalarNode& rounding = expression[e];
  if (rounding.op != ScalarOp::Convert || !isReducedFloat(rounding.type)) return std::nullopt;
  const ScalarNode& node = expression[rounding.operands[0]];
  const char* function = functionOf(node.op);
  if (node.type != DType::Float || !function) return std::nullopt;
  std::string operands;
  for (int i = 0; i < operandCount(node.op, node.function); ++i) {
    const auto text = operandText(expression, node.operands[static_cast<size_t>(i)], rounding.type);
    if (!text) return std::nullopt;
    operands += (i == 0 ? "" : ", ") + *text;
  }
  return fmt::format("{}({})", function, operands);
}

std::string pairOfFloats(DType type, const std::string& low, const std::string& high) {
  return fmt::format("{}({}, {})", type == DType::Half ? "wickToHalf2" : "wickToBFloat2", low,
                     high);
}

std::string pairOf(const std::string& low, const std::string& high) {
  return fmt::format("wickPair({}, {})", low, high);
}

}  // namespace wick::codegen
