#include "codegen/scalar/expression.h"

#include <fmt/format.h>

#include <bit>

#include "codegen/scalar/plain_builder.h"
#include "core/dtype_dispatch.h"
#include "core/keyed_hash.h"

namespace wick {

namespace {

template <class T>
inline constexpr bool kComputes = std::is_same_v<T, float> || std::is_same_v<T, double>;
template <class T>
inline constexpr bool kCounts = std::is_integral_v<T> && !std::is_same_v<T, bool>;

template <class T>
const void* addressOf(ScalarFunction f) {
  using B = PlainBuilder<T>;
  switch (f) {
#define WICK_FUNCTION(name)                                                     \
  case ScalarFunction::name:                                                    \
    if constexpr (kComputes<T>) return reinterpret_cast<const void*>(&B::name); \
    return nullptr;
    WICK_FORALL_UNARY_FUNCTIONS(WICK_FUNCTION)
    WICK_FORALL_BINARY_FUNCTIONS(WICK_FUNCTION)
#undef WICK_FUNCTION
    case ScalarFunction::gcd:
      if constexpr (kCounts<T>) return reinterpret_cast<const void*>(&B::gcd);
      return nullptr;
    case ScalarFunction::intPow:
      if constexpr (kCounts<T>) return reinterpret_cast<const void*>(&B::intPow);
      return nullptr;
  }
  return nullptr;
}

}  // namespace

const void* functionAddress(ScalarFunction f, DType type) {
  return dispatchAll(type, [&]<class T>() { return addressOf<T>(f); });
}

std::string_view toString(ScalarFunction f) {
  switch (f) {
#define WICK_FUNCTION(name)  \
  case ScalarFunction::name: \
    return #name;
    WICK_FORALL_UNARY_FUNCTIONS(WICK_FUNCTION)
    WICK_FORALL_BINARY_FUNCTIONS(WICK_FUNCTION)
#undef WICK_FUNCTION
    case ScalarFunction::gcd:
      return "gcd";
    case ScalarFunction::intPow:
      return "intPow";
  }
  return "?";
}

std::string_view toString(ScalarOp op) {
  constexpr std::string_view kNames[] = {
      "input",    "constant", "add",   "sub",    "mul",   "div",        "int_div",
      "int_rem",  "neg",      "abs",   "fma",    "eq",    "lt",         "le",
      "sign_bit", "and",      "or",    "xor",    "not",   "shift_left", "shift_right",
      "select",   "convert",  "bits",  "sqrt",   "floor", "ceil",       "trunc",
      "rint",     "copysign", "scale", "lookup", "call"};
  static_assert(std::size(kNames) == static_cast<size_t>(ScalarOp::Call) + 1);
  return kNames[static_cast<size_t>(op)];
}

int operandCount(ScalarOp op, ScalarFunction f) {
  switch (op) {
    case ScalarOp::Input:
    case ScalarOp::Constant:
      return 0;
    case ScalarOp::Neg:
    case ScalarOp::Abs:
    case ScalarOp::SignBit:
    case ScalarOp::Not:
    case ScalarOp::Convert:
    case ScalarOp::Bits:
    case ScalarOp::Sqrt:
    case ScalarOp::Floor:
    case ScalarOp::Ceil:
    case ScalarOp::Trunc:
    case ScalarOp::Rint:
    case ScalarOp::Lookup:
      return 1;
    case ScalarOp::Fma:
    case ScalarOp::Select:
      return 3;
    case ScalarOp::Call:
      switch (f) {
#define WICK_FUNCTION(name) case ScalarFunction::name:
        WICK_FORALL_UNARY_FUNCTIONS(WICK_FUNCTION)
#undef WICK_FUNCTION
        return 1;
        default:
          return 2;
      }
    default:
      return 2;
  }
}

std::string formatNode(const ScalarNode& node) {
  std::string text;
  if (node.op == ScalarOp::Constant) {
    if (isFloating(node.type)) {
      text = fmt::format("{} {:a}", wick::toString(node.type), std::bit_cast<double>(node.payload));
    } else {
      text = fmt::format("{} {}", wick::toString(node.type), static_cast<int64_t>(node.payload));
    }
    return text;
  }
  std::string_view name = node.op == ScalarOp::Call ? toString(node.function) : toString(node.op);
  text = fmt::format("{} {}", name, wick::toString(node.type));
  if (node.op == ScalarOp::Input) return fmt::format("{} {}", text, node.payload);
  for (int i = 0; i < operandCount(node.op, node.function); ++i) {
    text += fmt::format("{} %{}", i == 0 ? "" : ",", node.operands[i].id);
  }
  if (node.op == ScalarOp::Lookup) text += fmt::format(", table {}", node.payload);
  return text;
}

size_t Expression::Hash::operator()(const ScalarNode& n) const {
  size_t h = static_cast<size_t>(n.op) * 31 + static_cast<size_t>(n.type);
  h = h * 131 + static_cast<size_t>(n.function);
  for (ScalarExpr e : n.operands) h = (h ^ static_cast<size_t>(e.id + 1)) * 0x9e3779b97f4a7c15u;
  return keyedHash(h, n.payload);
}

ScalarExpr Expression::add(const ScalarNode& node) {
  auto [it, added] = known_.try_emplace(node, ScalarExpr{static_cast<int32_t>(nodes_.size())});
  if (added) nodes_.push_back(node);
  return it->second;
}

ScalarExpr Expression::input(uint32_t index, DType type) {
  ScalarNode node;
  node.op = ScalarOp::Input;
  node.type = type;
  node.payload = index;
  return add(node);
}

ScalarExpr Expression::integer(int64_t value, DType type) {
  ScalarNode node;
  node.type = type;
  node.payload = static_cast<uint64_t>(value);
  return add(node);
}

ScalarExpr Expression::constant(double value, DType type) {
  if (type == DType::Float) value = static_cast<float>(value);
  if (isFloating(type)) return integer(std::bit_cast<int64_t>(value), type);
  return dispatchAll(type, [&]<class T>() {
    if constexpr (std::is_integral_v<T>) {
      return integer(static_cast<int64_t>(wick::convert<T>(value)), type);
    } else {
      return ScalarExpr();
    }
  });
}

namespace {

// To the nearest number of a reduced float.
double rounded(double value, DType type) {
  const auto single = static_cast<float>(value);
  if (type == DType::Half) return static_cast<float>(wick::convert<Half>(single));
  return static_cast<float>(wick::convert<BFloat16>(single));
}

}  // namespace

ScalarExpr Expression::convert(ScalarExpr from, DType type) {
  if (!from.valid() || (*this)[from].type == type) return from;
  const ScalarNode& source = (*this)[from];
  if (source.op == ScalarOp::Convert && isReducedFloat(source.type) && type == DType::Float) {
    const ScalarNode& constant = (*this)[source.operands[0]];
    if (constant.op == ScalarOp::Constant && constant.type == DType::Float) {
      return this->constant(rounded(std::bit_cast<double>(constant.payload), source.type), type);
    }
  }
  ScalarNode node;
  node.op = ScalarOp::Convert;
  node.type = type;
  node.operands[0] = from;
  return add(node);
}

namespace {

// What a comparison of an absolute value with a number below all of them depends on: always true but for NaN, or never. The
// assembler of CUDA 13 takes the former for true.
std::optional<ScalarExpr> ofAbsolute(Expression& in, ScalarOp op, ScalarExpr a, ScalarExpr b) {
  if ((op != ScalarOp::Lt && op != ScalarOp::Le) || !isFloating(in[a].type)) return std::nullopt;
  const auto isBelow = [&](ScalarExpr e, bool or_zero) {
    if (in[e].op != ScalarOp::Constant) return false;
    const auto value = std::bit_cast<double>(in[e].payload);
    return value < 0 || (or_zero && value == 0);
  };
  const bool strict = op == ScalarOp::Lt;
  if (in[b].op == ScalarOp::Abs && isBelow(a, !strict)) {
    ScalarNode number;
    number.op = ScalarOp::Eq;
    number.type = DType::Bool;
    number.operands = {in[b].operands[0], in[b].operands[0], ScalarExpr()};
    return in.add(number);
  }
  if (in[a].op == ScalarOp::Abs && isBelow(b, strict)) return in.integer(0, DType::Bool);
  return std::nullopt;
}

}  // namespace

ScalarExpr ExprBuilder::node(ScalarOp op, DType type, V a, V b, V c) const {
  ScalarNode node;
  node.op = op;
  node.type = type;
  node.operands = {a, b, c};
  const int n = operandCount(op, node.function);
  for (int i = 0; i < n; ++i) {
    if (!node.operands[i].valid()) return {};
  }
  if (const auto known = ofAbsolute(*into_, op, a, b)) return *known;
  return into_->add(node);
}

ScalarExpr ExprBuilder::call(ScalarFunction f, V a, V b) const {
  ScalarNode node;
  node.op = ScalarOp::Call;
  node.type = type_;
  node.function = f;
  node.operands = {a, b, ScalarExpr()};
  const int n = operandCount(node.op, f);
  for (int i = 0; i < n; ++i) {
    if (!node.operands[i].valid()) return {};
  }
  return into_->add(node);
}

ScalarExpr ExprBuilder::lookup(floats::FloatTable t, I i) const {
  if (!i.valid()) return {};
  ScalarNode node;
  node.op = ScalarOp::Lookup;
  node.operands[0] = i;
  node.payload = static_cast<uint64_t>(t);
  return into_->add(node);
}

ScalarExpr ExprBuilder::select(Mask m, V a, V b) const {
  if (!a.valid() || !b.valid()) return {};
  return node(ScalarOp::Select, (*into_)[a].type, m, a, b);
}

ScalarExpr ExprBuilder::lowest() const {
  return dispatchAll(type_, [&]<class T>() {
    using L = std::numeric_limits<T>;
    if constexpr (std::is_integral_v<T>) {
      return into_->integer(static_cast<int64_t>(L::lowest()), type_);
    } else if constexpr (kComputes<T>) {
      return into_->constant(static_cast<double>(L::lowest()), type_);
    } else {
      return ScalarExpr();
    }
  });
}

ScalarExpr ExprBuilder::highest() const {
  return dispatchAll(type_, [&]<class T>() {
    using L = std::numeric_limits<T>;
    if constexpr (std::is_integral_v<T>) {
      return into_->integer(static_cast<int64_t>(L::max()), type_);
    } else if constexpr (kComputes<T>) {
      return into_->constant(static_cast<double>(L::max()), type_);
    } else {
      return ScalarExpr();
    }
  });
}

}  // namespace wick
