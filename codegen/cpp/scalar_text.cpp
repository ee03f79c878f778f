#include "codegen/cpp/scalar_text.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <string_view>

#include "codegen/scalar/double_functions.h"
#include "codegen/scalar/usual_form.h"

namespace wick::codegen {

namespace {

std::string usualName(const ScalarNode& node) {
  return fmt::format("wick{}Of{}", toString(node.function),
                     node.type == DType::Float ? "Float" : "Double");
}

std::string libraryCall(ScalarFunction f, DType type, const std::string& arguments) {
  const std::string_view name = libraryName(f);
  if (name.empty() || (type != DType::Float && type != DType::Double)) {
    throw NoCppText(
        fmt::format("no C++ text for the function {} of {}", toString(f), toString(type)));
  }
  return fmt::format("std::{}({})", name, arguments);
}

// C++ proper.
class CppText final : public ScalarText {
 public:
  CppText()
      : ScalarText({.language = "C++",
                    .byte = "uint8_t",
                    .signed_byte = "int8_t",
                    .short_word = "int16_t",
                    .word = "int32_t",
                    .long_word = "int64_t",
                    .unsigned_word = "uint32_t",
                    .unsigned_long = "uint64_t",
                    .builtin = "__builtin_",
                    .widen = "wickWide"}) {}

  // What a decimal number says exactly is written like that.
  std::string floatText(double value, DType type) const override {
    const bool single = type == DType::Float;
    if (std::isfinite(value)) {
      const bool whole = std::fabs(value) < 1e6 && value == std::trunc(value);
      std::string text = whole ? fmt::format("{:.1f}", value) : fmt::format("{:a}", value);
      if (single) text += "f";
      return std::signbit(value) ? "(" + text + ")" : text;
    }
    return single ? fmt::format("wickFloat({:#x}u)",
                                std::bit_cast<uint32_t>(static_cast<float>(value)))
                  : fmt::format("wickDouble({:#x}u)", std::bit_cast<uint64_t>(value));
  }
  // The least number has no literal of its own.
  std::string integerText(int64_t value, DType type) const override {
    if (type == DType::Bool) return value != 0 ? "true" : "false";
    if (type == DType::Int && value > INT32_MIN)
      return value < 0 ? fmt::format("({})", value) : fmt::format("{}", value);
    if (type == DType::Long && value != INT64_MIN) return fmt::format("int64_t({})", value);
    return fmt::format("static_cast<{}>({:#x}u)", cppType(type), static_cast<uint64_t>(value));
  }

 private:
  std::string bitsText(const std::string& value, DType to) const override {
    return fmt::format("wickBits<{}>({})", cppType(to), value);
  }
  // Compilers warn of comparisons of numbers without sign with zero that are always false.
  std::string comparedText(const char* sign, const std::string& a, const std::string& b,
                           DType type) const override {
    if (type != DType::Byte) return ScalarText::comparedText(sign, a, b, type);
    const bool less = std::string_view(sign) == "<";
    return less ? fmt::format("wickLess({}, {})", a, b) : fmt::format("(!wickLess({}, {}))", b, a);
  }
  std::string lookupText(uint64_t table, const std::string& index) const override {
    return fmt::format("wickTable{}[{}]", table, index);
  }
  std::string callText(const ScalarNode& node, const std::string& arguments) const override {
    using F = ScalarFunction;
    if (node.function == F::gcd) return fmt::format("wickGcd({})", arguments);
    if (node.function == F::intPow) return fmt::format("wickIntPow({})", arguments);
    if (usualForm(node.function, node.type)) {
      return fmt::format("{}({})", usualName(node), arguments);
    }
    if (node.function == F::copysign) return fmt::format("std::copysign({})", arguments);
    return libraryCall(node.function, node.type, arguments);
  }
};
const CppText kText;

constexpr const char* kSupport = R"(#include <immintrin.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace {

// Memory that a loop both reads and writes is the same element of both.
#if defined(__clang__)
#define WICK_VECTORIZE
#else
#define WICK_VECTORIZE _Pragma("GCC ivdep")
#endif
#if !defined(_OPENMP)
#define WICK_PARALLEL
#define WICK_PARALLEL_VECTORIZE WICK_VECTORIZE
#elif defined(__clang__)
#define WICK_PARALLEL _Pragma("omp parallel for")
#define WICK_PARALLEL_VECTORIZE WICK_PARALLEL
#else
#define WICK_PARALLEL _Pragma("omp parallel for")
#define WICK_PARALLEL_VECTORIZE _Pragma("omp parallel for simd")
#endif
#define WICK_PRAGMA(text) _Pragma(#text)
#if !defined(_OPENMP)
#define WICK_PARALLEL_IF(condition) static_cast<void>(condition);
#define WICK_PARALLEL_VECTORIZE_IF(condition) static_cast<void>(condition); WICK_VECTORIZE
#elif defined(__clang__)
#define WICK_PARALLEL_IF(condition) WICK_PRAGMA(omp parallel for if (condition))
#define WICK_PARALLEL_VECTORIZE_IF(condition) WICK_PARALLEL_IF(condition)
#else
#define WICK_PARALLEL_IF(condition) WICK_PRAGMA(omp parallel for if (condition))
#define WICK_PARALLEL_VECTORIZE_IF(condition) \
  WICK_PRAGMA(omp parallel for simd if (parallel : condition))
#endif
#define WICK_INLINE [[maybe_unused]] static inline __attribute__((always_inline))

struct wickHalf { uint16_t bits; };
struct wickBFloat { uint16_t bits; };

template <class To, class From>
WICK_INLINE To wickBits(From from) {
  static_assert(sizeof(To) == sizeof(From), "bits");
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}
WICK_INLINE float wickFloat(uint32_t bits) { return wickBits<float>(bits); }
WICK_INLINE double wickDouble(uint64_t bits) { return wickBits<double>(bits); }
WICK_INLINE float wickWide(wickHalf h) { return _cvtsh_ss(h.bits); }
WICK_INLINE float wickWide(wickBFloat h) { return wickFloat(static_cast<uint32_t>(h.bits) << 16); }
WICK_INLINE wickHalf wickToHalf(float v) {
  return {static_cast<uint16_t>(_cvtss_sh(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC))};
}
WICK_INLINE wickBFloat wickToBFloat(float v) {
  const uint32_t bits = wickBits<uint32_t>(v);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return {static_cast<uint16_t>(v != v ? 0x7fc0u : rounded)};
}
WICK_INLINE bool wickLess(uint8_t a, uint8_t b) { return a < b; }
)";

// A table that float functions look into.
CppFunction tableText(uint64_t table) {
  const std::string name = fmt::format("wickTable{}", table);
  std::string text = fmt::format("const float {}[{}] = {{", name, floats::kFloatTableSize);
  size_t i = 0;
  for (const float value : floats::valuesOf(static_cast<floats::FloatTable>(table))) {
    text += fmt::format("{}{:a}f", i % 4 == 0 ? "\n    " : " ", value);
    if (++i < floats::kFloatTableSize) text += ",";
  }
  return {name, text + "};\n"};
}

// A static function of an expression whose inputs are its arguments.
std::string functionText(const std::string& head, const Expression& expression, ScalarExpr value) {
  std::string text = head + " {\n";
  std::vector<bool> needed(expression.nodes().size());
  needed[static_cast<size_t>(value.id)] = true;
  for (auto i = expression.nodes().size(); i-- > 0;) {
    const ScalarNode& node = expression.nodes()[i];
    if (!needed[i] || node.op == ScalarOp::Input) continue;
    for (int k = 0; k < operandCount(node.op, node.function); ++k) {
      needed[static_cast<size_t>(node.operands[static_cast<size_t>(k)].id)] = true;
    }
  }
  std::vector<std::string> names;
  for (size_t i = 0; i < expression.nodes().size(); ++i) {
    const ScalarNode& node = expression.nodes()[i];
    if (node.op == ScalarOp::Input) {
      names.push_back(node.payload == 0 ? "a" : "b");
      continue;
    }
    names.push_back(fmt::format("v{}", i));
    if (!needed[i]) continue;
    std::vector<std::string> operands;
    std::vector<DType> types;
    for (int k = 0; k < operandCount(node.op, node.function); ++k) {
      const ScalarExpr operand = node.operands[static_cast<size_t>(k)];
      operands.push_back(names[static_cast<size_t>(operand.id)]);
      types.push_back(expression[operand].type);
    }
    text += fmt::format("  const {} v{} = {};\n", cppType(node.type), i,
                        cppText(node, operands, types));
  }
  return text + fmt::format("  return {};\n}}\n", names[static_cast<size_t>(value.id)]);
}

}  // namespace

std::string cppType(DType type) {
  return kText.type(type);
}

std::string cppNumber(uint64_t bits, DType type) {
  switch (type) {
    case DType::Half:
    case DType::BFloat16:
      return fmt::format("{}{{{:#x}u}}", cppType(type), bits & 0xffff);
    case DType::Float:
      return kText.floatText(static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits))),
                             type);
    case DType::Double:
      return kText.floatText(std::bit_cast<double>(bits), type);
    case DType::Bool:
      return (bits & 255) != 0 ? "true" : "false";
    case DType::Byte:
      return kText.integerText(static_cast<uint8_t>(bits), type);
    case DType::Char:
      return kText.integerText(static_cast<int8_t>(bits), type);
    case DType::Short:
      return kText.integerText(static_cast<int16_t>(bits), type);
    case DType::Int:
      return kText.integerText(static_cast<int32_t>(bits), type);
    default:
      return kText.integerText(static_cast<int64_t>(bits), type);
  }
}

std::string cppConvert(const std::string& value, DType from, DType to) {
  return kText.convert(value, from, to);
}

std::string cppText(const ScalarNode& node, std::span<const std::string> operands,
                    std::span<const DType> types) {
  return kText.text(node, operands, types);
}

std::string cppSupportText() {
  return std::string(kSupport) + kIntegerText;
}

namespace {

CppFunction scaleText(DType type) {
  Expression steps;
  const ExprBuilder b(steps, type);
  const ScalarExpr a = steps.input(0, type), exponent = steps.input(1, type);
  const bool wide = type == DType::Double;
  const ScalarExpr scaled =
      wide ? doubles::scaleInSteps(b, a, exponent) : floats::scaleInSteps(b, a, exponent);
  const std::string name = wide ? "wickScaleDouble" : "wickScaleFloat";
  const std::string head = fmt::format("WICK_INLINE {0} {1}({0} a, {0} b)", cppType(type), name);
  return {name, functionText(head, steps, scaled)};
}

CppFunction usualText(const ScalarNode& node, const UsualForm& form) {
  const std::string t = cppType(node.type), name = usualName(node);
  const bool binary = operandCount(node.op, node.function) == 2;
  const std::string parameters = binary ? fmt::format("{0} a, {0} b", t) : t + " a";
  const char* arguments = binary ? "a, b" : "a";
  const auto function = [&](const std::string& result, const char* suffix, ScalarExpr value) {
    return functionText(fmt::format("WICK_INLINE {} {}{}({})", result, name, suffix, parameters),
                        form.arithmetic, value);
  };
  if (!form.usual.valid()) return {name, function(t, "", form.value)};
  return {name, function(t, "Usually", form.value) + function("bool", "IsUsual", form.usual) +
                    fmt::format("WICK_INLINE {0} {1}({2}) {{\n"
                                "  return {1}IsUsual({3}) ? {1}Usually({3}) : {4};\n}}\n",
                                t, name, parameters, arguments,
                                libraryCall(node.function, node.type, arguments))};
}

}  // namespace

std::vector<CppFunction> cppFunctions(const Expression& expression) {
  std::vector<CppFunction> functions;
  const auto add = [&](std::vector<CppFunction> more) {
    for (CppFunction& f : more) functions.push_back(std::move(f));
  };
  for (const ScalarNode& node : expression.nodes()) {
    if (node.op == ScalarOp::Lookup) add({tableText(node.payload)});
    if (node.op == ScalarOp::Scale) add({scaleText(node.type)});
    if (node.op != ScalarOp::Call) continue;
    const std::optional<UsualForm> form = usualForm(node.function, node.type);
    if (!form) continue;
    add(cppFunctions(form->arithmetic));  // those that it calls come first
    add({usualText(node, *form)});
  }
  return functions;
}

}  // namespace wick::codegen
