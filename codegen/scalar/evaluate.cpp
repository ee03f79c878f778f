#include "codegen/scalar/evaluate.h"

#include "codegen/scalar/plain_builder.h"

namespace wick {

namespace {

template <class T>
ScalarBits compute(const ScalarNode& node, std::span<const ScalarBits> in) {
  using B = PlainBuilder<T>;
  const T a = fromScalarBits<T>(in[0]);
  const T b = in.size() > 1 ? fromScalarBits<T>(in[1]) : T();
  switch (node.op) {
    case ScalarOp::Add:
      return toScalarBits(B::add(a, b));
    case ScalarOp::Sub:
      return toScalarBits(B::sub(a, b));
    case ScalarOp::Mul:
      return toScalarBits(B::mul(a, b));
    case ScalarOp::Div:
      return toScalarBits(B::div(a, b));
    case ScalarOp::IntDiv:
      return toScalarBits(B::intDiv(a, b));
    case ScalarOp::IntRem:
      return toScalarBits(B::intRem(a, b));
    case ScalarOp::Neg:
      return toScalarBits(B::neg(a));
    case ScalarOp::Abs:
      return toScalarBits(B::abs(a));
    case ScalarOp::And:
      return toScalarBits(B::bitAnd(a, b));
    case ScalarOp::Or:
      return toScalarBits(B::bitOr(a, b));
    case ScalarOp::Xor:
      return toScalarBits(B::bitXor(a, b));
    case ScalarOp::Not:
      return toScalarBits(B::bitNot(a));
    case ScalarOp::ShiftLeft:
      return toScalarBits(B::shiftLeft(a, b));
    case ScalarOp::ShiftRight:
      return toScalarBits(B::shiftRight(a, b));
    case ScalarOp::Fma:
      if constexpr (std::is_floating_point_v<T>)
        return toScalarBits(std::fma(a, b, fromScalarBits<T>(in[2])));
      break;
#define WICK_UNARY(Op, name) \
  case ScalarOp::Op:         \
    return toScalarBits(B::name(a));
      WICK_UNARY(Sqrt, sqrt)
      WICK_UNARY(Floor, floor)
      WICK_UNARY(Ceil, ceil)
      WICK_UNARY(Trunc, trunc)
      WICK_UNARY(Rint, rint)
#undef WICK_UNARY
    case ScalarOp::Copysign:
      return toScalarBits(B::copysign(a, b));
    case ScalarOp::Call: {
      const void* f = functionAddress(node.function, node.type);
      WICK_ASSERT(f, "no function {} for {}", toString(node.function), toString(node.type));
      if (in.size() == 1) return toScalarBits(reinterpret_cast<T (*)(T)>(const_cast<void*>(f))(a));
      return toScalarBits(reinterpret_cast<T (*)(T, T)>(const_cast<void*>(f))(a, b));
    }
    default:
      break;
  }
  WICK_ASSERT(false, "{} of {} has no value", toString(node.op), toString(node.type));
}

template <class T>
bool compare(ScalarOp op, std::span<const ScalarBits> in) {
  using B = PlainBuilder<T>;
  const T a = fromScalarBits<T>(in[0]);
  if (op == ScalarOp::SignBit) return B::signBit(a);
  const T b = fromScalarBits<T>(in[1]);
  return op == ScalarOp::Eq ? B::eq(a, b) : op == ScalarOp::Lt ? B::lt(a, b) : B::le(a, b);
}

}  // namespace

ScalarBits evaluateNode(const ScalarNode& node, std::span<const ScalarBits> operands,
                        std::span<const DType> types) {
  switch (node.op) {
    case ScalarOp::Constant:
      return dispatch<kStoredDTypes>("expression", node.type, [&]<class T>() {
        if constexpr (std::is_integral_v<T>) {
          return toScalarBits(static_cast<T>(static_cast<int64_t>(node.payload)));
        } else {
          return toScalarBits(convert<T>(std::bit_cast<double>(node.payload)));
        }
      });
    case ScalarOp::Convert:
      return dispatch<kStoredDTypes>("expression", types[0], [&]<class From>() {
        return dispatch<kStoredDTypes>("expression", node.type, [&]<class To>() {
          return toScalarBits(convert<To>(fromScalarBits<From>(operands[0])));
        });
      });
    case ScalarOp::Bits:
      return operands[0];
    case ScalarOp::Scale:
      if (node.type == DType::Double) {
        return toScalarBits(doubles::DoubleOps::scale(fromScalarBits<double>(operands[0]),
                                                      fromScalarBits<double>(operands[1])));
      }
      return toScalarBits(floats::FloatOps::scale(fromScalarBits<float>(operands[0]),
                                                  fromScalarBits<float>(operands[1])));
    case ScalarOp::Lookup:
      return toScalarBits(floats::FloatOps::lookup(static_cast<floats::FloatTable>(node.payload),
                                                   fromScalarBits<int32_t>(operands[0])));
    case ScalarOp::Select:
      return fromScalarBits<bool>(operands[0]) ? operands[1] : operands[2];
    case ScalarOp::Eq:
    case ScalarOp::Lt:
    case ScalarOp::Le:
    case ScalarOp::SignBit:
      return dispatch<kComputedDTypes>("expression", types[0], [&]<class T>() {
        return toScalarBits(compare<T>(node.op, operands));
      });
    default:
      return dispatch<kComputedDTypes>("expression", node.type,
                                       [&]<class T>() { return compute<T>(node, operands); });
  }
}

std::vector<ScalarBits> evaluate(const Expression& expression, std::span<const ScalarBits> inputs) {
  std::vector<ScalarBits> values;
  values.reserve(expression.nodes().size());
  for (const ScalarNode& node : expression.nodes()) {
    if (node.op == ScalarOp::Input) {
      values.push_back(inputs[node.payload]);
      continue;
    }
    const auto n = static_cast<size_t>(operandCount(node.op, node.function));
    ScalarBits in[3] = {};
    DType types[3] = {};
    for (size_t i = 0; i < n; ++i) {
      in[i] = values[static_cast<size_t>(node.operands[i].id)];
      types[i] = expression[node.operands[i]].type;
    }
    values.push_back(evaluateNode(node, std::span<const ScalarBits>(in, n), types));
  }
  return values;
}

}  // namespace wick
