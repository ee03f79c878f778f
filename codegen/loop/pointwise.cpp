// Operators whose record names a scalar definition are that definition applied to their arguments;
// the table here has those whose kernel does more, as far as constants decide what it does.
#include "codegen/loop/pointwise.h"

#include <cmath>
#include <string>
#include <unordered_map>

#include "codegen/loop/writes.h"
#include "codegen/scalar/activations.h"
#include "codegen/scalar/arithmetic.h"
#include "codegen/scalar/mathematics.h"
#include "codegen/scalar/promotion.h"
#include "core/number_range.h"

namespace wick::loop {

namespace {

using namespace scalar;
using Result = std::optional<PointwiseCall>;

// The arguments of a node, as rules look at them.
class Arguments {
 public:
  Arguments(const Node* node, const TypeOf& type_of) : node_(node), type_of_(type_of) {}
  size_t size() const { return node_->inputs().size(); }
  const Node* node() const { return node_; }
  std::optional<IValue> constant(size_t i) const { return constantOf(node_->input(i)); }
  std::optional<Scalar> number(size_t i) const {
    auto value = constant(i);
    if (!value || !value->isNumber() || value->isComplex()) return std::nullopt;
    return Scalar::fromIValue(*value);
  }
  bool isNone(size_t i) const {
    auto value = constant(i);
    return value && value->isNone();
  }
  std::optional<std::string> text(size_t i) const {
    auto value = constant(i);
    if (!value || !value->isString()) return std::nullopt;
    return value->toString();
  }
  // A tensor or a number that is not a tensor.
  OperandType type(size_t i) const {
    if (auto n = number(i)) return {false, n->dtype(), 0};
    return type_of_(node_->input(i));
  }
  Operand operand(size_t i) const {
    if (auto n = number(i)) return *n;
    return node_->input(i);
  }
  DType common(std::initializer_list<size_t> which) const {
    DTypePromotion types;
    for (size_t i : which) {
      OperandType t = type(i);
      if (t.is_tensor) {
        types.addTensor(t.dtype, t.rank > 0);
      } else {
        types.addNumber(t.dtype);
      }
    }
    return types.empty() ? DType::Bool : types.get();
  }
  // What the number must be when the kernel is launched.
  void require(size_t i, DType dtype, bool number_only = false) {
    ranges_.push_back({node_->input(i), dtype, number_only});
  }
  std::vector<RangeCheck> takeRanges() { return std::move(ranges_); }

 private:
  const Node* node_;
  const TypeOf& type_of_;
  std::vector<RangeCheck> ranges_;
};

template <class Def>
Result call(std::vector<Operand> operands, std::optional<DType> cast = std::nullopt) {
  return PointwiseCall{&kScalar<Def>, std::move(operands), cast};
}

bool isOne(const Scalar& s) {
  return s.toDouble() == 1.0;
}

// x + alpha * y, or minus.
template <class Plain, class Scaled>
Result scaled(Arguments& a, size_t x, size_t y) {
  auto alpha = a.number(2);
  DType common = a.common({0, 1});
  if (!alpha && isFloating(common) && !a.type(2).is_tensor && isFloating(a.type(2).dtype)) {
    // Known when the kernel is launched. A product with one is exact, so that needs no other kernel.
    return call<Scaled>({a.operand(x), a.operand(y), a.operand(2)});
  }
  if (!alpha || (alpha->isBool() && common != DType::Bool)) return std::nullopt;
  if (isIntegral(common, true) && !alpha->isInt() && !alpha->isBool()) return std::nullopt;
  if (isOne(*alpha)) return call<Plain>({a.operand(x), a.operand(y)});
  return call<Scaled>({a.operand(x), a.operand(y), *alpha});
}
Result add(Arguments& a) {
  return scaled<Add, AddAlpha>(a, 0, 1);
}
bool anyBool(Arguments& a) {
  return a.type(0).dtype == DType::Bool || a.type(1).dtype == DType::Bool;
}
Result sub(Arguments& a) {
  return anyBool(a) ? std::nullopt : scaled<Sub, SubAlpha>(a, 0, 1);
}
Result rsub(Arguments& a) {
  return anyBool(a) ? std::nullopt : scaled<Sub, SubAlpha>(a, 1, 0);
}

// Integers may divide by zero, which raises.
template <class Def>
Result quotient(Arguments& a) {
  if (isIntegral(a.common({0, 1}), true)) return std::nullopt;
  return call<Def>({a.operand(0), a.operand(1)});
}
Result divMode(Arguments& a) {
  if (a.isNone(2)) return call<TrueDiv>({a.operand(0), a.operand(1)});
  auto mode = a.text(2);
  if (mode == "trunc") {
    // The quotient of two tensors of half precision is rounded before it is cut off.
    const DType common = a.common({0, 1});
    if (common == DType::Half || common == DType::BFloat16) return std::nullopt;
    return quotient<TruncDiv>(a);
  }
  if (mode == "floor") return quotient<FloorDiv>(a);
  return std::nullopt;
}
Result div(Arguments& a) {
  return a.size() == 3 ? divMode(a) : call<TrueDiv>({a.operand(0), a.operand(1)});
}

Result powNumber(Arguments& a, const Scalar& exponent) {
  DTypePromotion types;
  OperandType self = a.type(0);
  types.addTensor(self.dtype, self.rank > 0);
  types.addNumber(exponent.dtype());
  DType common = types.empty() ? DType::Bool : types.get();
  double e = exponent.toDouble();
  if (isIntegral(self.dtype, true) && exponent.isInt() && e < 0) return std::nullopt;
  if (e == 0 || e == 1 || common == DType::Bool) return std::nullopt;
  Operand base = a.operand(0);
  if (e == 2) return call<Square>({base}, common);
  if (e == 3) return call<Cube>({base}, common);
  if (!isIntegral(common, true)) {
    if (e == 0.5) return call<Sqrt>({base}, common);
    if (e == -0.5) return call<Rsqrt>({base}, common);
    if (e == -1) return call<Reciprocal>({base}, common);
    if (e == -2) return call<InverseSquare>({base}, common);
  }
  return call<Pow>({base, exponent});
}
Result pow(Arguments& a) {
  OperandType base = a.type(0);
  OperandType exponent = a.type(1);
  if (base.is_tensor && exponent.is_tensor) return call<Pow>({a.operand(0), a.operand(1)});
  auto number = a.number(1);
  if (!base.is_tensor || !number) return std::nullopt;
  return powNumber(a, *number);
}
Result square(Arguments& a) {
  return powNumber(a, Scalar(2));
}

template <class Def>
Result notBool(Arguments& a) {
  if (a.type(0).dtype == DType::Bool) return std::nullopt;
  return call<Def>({a.operand(0)});
}
template <class Def>
Result plain(Arguments& a) {
  return call<Def>({a.operand(0)});
}
template <class Def>
Result rounding(Arguments& a) {
  if (isIntegral(a.type(0).dtype, false)) return call<Identity>({a.operand(0)});
  return call<Def>({a.operand(0)});
}

// Whether a tensor of this dtype holds the number, for the operator refuses one that it does not.
// Of numbers that are not known yet it is required. Integers take no number of another kind here.
bool fits(Arguments& a, size_t i, DType dtype) {
  if (a.type(i).is_tensor) return true;
  const auto known = a.number(i);
  const bool integers = isIntegral(dtype, true);
  if (integers && (a.type(i).dtype != DType::Long || dtype == DType::Bool)) return false;
  if (!known) {
    if (dtype != DType::Double && dtype != DType::Long) a.require(i, dtype);
    return true;
  }
  return holdsNumber(dtype, *known);
}

// Whether the number may be NaN; a number that is not known yet is required not to be NaN.
bool mayBeNaN(Arguments& a, size_t i) {
  if (a.type(i).is_tensor) return false;
  if (const auto known = a.number(i)) return std::isnan(known->toDouble());
  if (isFloating(a.type(i).dtype)) a.require(i, DType::Double, true);
  return false;
}

// A bound that is None does not count; a single one that is NaN has rules of its own.
Result clamp(Arguments& a) {
  bool low = a.size() > 1 && !a.isNone(1);
  bool high = a.size() > 2 && !a.isNone(2);
  if (!low && !high) return std::nullopt;
  DType common = low && high ? a.common({0, 1, 2}) : a.common({0, low ? size_t{1} : size_t{2}});
  if (common == DType::Bool || a.type(0).dtype == DType::Bool) return std::nullopt;
  if ((low && !fits(a, 1, common)) || (high && !fits(a, 2, common))) return std::nullopt;
  if (low != high && mayBeNaN(a, low ? 1 : 2)) return std::nullopt;
  if (!high) return call<ClampMin>({a.operand(0), a.operand(1)});
  if (!low) return call<ClampMax>({a.operand(0), a.operand(2)});
  return call<Clamp>({a.operand(0), a.operand(1), a.operand(2)});
}
template <class Def>
Result clampOne(Arguments& a) {
  DType common = a.common({0, 1});
  if (common == DType::Bool || a.type(0).dtype == DType::Bool || !fits(a, 1, common)) {
    return std::nullopt;
  }
  return call<Def>({a.operand(0), a.operand(1)});
}
Result maskedFill(Arguments& a) {
  OperandType value = a.type(2);
  if (value.is_tensor ? value.rank != 0 : !fits(a, 2, a.type(0).dtype)) return std::nullopt;
  return call<MaskedFill>({a.operand(0), a.operand(1), a.operand(2)});
}
Result where(Arguments& a) {
  DType condition = a.type(0).dtype;
  if (condition != DType::Bool && condition != DType::Byte) return std::nullopt;
  DType common = a.common({1, 2});
  if (isFloating(common) && (!fits(a, 1, common) || !fits(a, 2, common))) return std::nullopt;
  return call<Where>({a.operand(0), a.operand(1), a.operand(2)});
}

Result eluOf(Arguments& a, double alpha, double scale, double input_scale) {
  return call<Elu>({a.operand(0), Scalar(alpha * scale), Scalar(scale), Scalar(input_scale)});
}
Result elu(Arguments& a) {
  auto alpha = a.number(1), scale = a.number(2), input_scale = a.number(3);
  if (!alpha || !scale || !input_scale) return std::nullopt;
  return eluOf(a, alpha->toDouble(), scale->toDouble(), input_scale->toDouble());
}
Result selu(Arguments& a) {
  return eluOf(a, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1);
}
Result celu(Arguments& a) {
  auto alpha = a.number(1);
  if (!alpha || alpha->toDouble() == 0) return std::nullopt;
  return eluOf(a, alpha->toDouble(), 1, 1 / alpha->toDouble());
}
Result gelu(Arguments& a) {
  auto approximate = a.text(1);
  if (approximate == "none") return call<Gelu>({a.operand(0)});
  if (approximate == "tanh") return call<GeluTanh>({a.operand(0)});
  return std::nullopt;
}
Result hardtanh(Arguments& a) {
  DType dtype = a.type(0).dtype;
  if (!fits(a, 1, dtype) || !fits(a, 2, dtype)) return std::nullopt;
  return call<Hardtanh>({a.operand(0), a.operand(1), a.operand(2)});
}
Result relu6(Arguments& a) {
  return call<Hardtanh>({a.operand(0), Scalar(0), Scalar(6)});
}
Result threshold(Arguments& a) {
  DType dtype = a.type(0).dtype;
  if (!fits(a, 1, dtype) || !fits(a, 2, dtype)) return std::nullopt;
  return call<Threshold>({a.operand(0), a.operand(1), a.operand(2)});
}
Result softshrink(Arguments& a) {
  auto lambda = a.number(1);
  if (!lambda || !(lambda->toDouble() >= 0)) return std::nullopt;
  return call<Softshrink>({a.operand(0), *lambda});
}

Result lerp(Arguments& a) {
  if (a.type(0).dtype != a.type(1).dtype) return std::nullopt;
  if (!a.type(2).is_tensor) {
    if (!fits(a, 2, a.type(0).dtype)) return std::nullopt;
    return call<LerpNumber>({a.operand(0), a.operand(1), a.operand(2)});
  }
  if (a.type(0).dtype != a.type(2).dtype) return std::nullopt;
  return call<Lerp>({a.operand(0), a.operand(1), a.operand(2)});
}
Result addcmul(Arguments& a) {
  if (!fits(a, 3, a.common({0, 1, 2}))) return std::nullopt;
  return call<Addcmul>({a.operand(0), a.operand(1), a.operand(2), a.operand(3)});
}
Result addcdiv(Arguments& a) {
  if (isIntegral(a.type(1).dtype, true) && isIntegral(a.type(2).dtype, true)) return std::nullopt;
  return call<Addcdiv>({a.operand(0), a.operand(1), a.operand(2), a.operand(3)});
}
Result heaviside(Arguments& a) {
  if (a.type(0).dtype != a.type(1).dtype) return std::nullopt;
  return call<Heaviside>({a.operand(0), a.operand(1)});
}

using Rule = Result (*)(Arguments&);

const std::unordered_map<std::string, Rule>& rules() {
  static const auto* table = new std::unordered_map<std::string, Rule>{
      {"aten::add", add},
      {"aten::sub", sub},
      {"aten::rsub", rsub},
      {"aten::div", div},
      {"aten::floor_divide", quotient<FloorDiv>},
      {"aten::remainder", quotient<Remainder>},
      {"aten::fmod", quotient<Fmod>},
      {"aten::pow", pow},
      {"aten::square", square},
      {"aten::neg", notBool<Neg>},
      {"aten::abs", notBool<Abs>},
      {"aten::sign", plain<Sign>},
      {"aten::sgn", plain<Sign>},
      {"aten::ceil", rounding<Ceil>},
      {"aten::floor", rounding<Floor>},
      {"aten::trunc", rounding<Trunc>},
      {"aten::round", rounding<Round>},
      {"aten::clamp", clamp},
      {"aten::clamp_min", clampOne<ClampMin>},
      {"aten::clamp_max", clampOne<ClampMax>},
      {"aten::masked_fill", maskedFill},
      {"aten::where", where},
      {"aten::elu", elu},
      {"aten::selu", selu},
      {"aten::celu", celu},
      {"aten::gelu", gelu},
      {"aten::hardtanh", hardtanh},
      {"aten::relu6", relu6},
      {"aten::threshold", threshold},
      {"aten::softshrink", softshrink},
      {"aten::lerp", lerp},
      {"aten::addcmul", addcmul},
      {"aten::addcdiv", addcdiv},
      {"aten::heaviside", heaviside},
  };
  return *table;
}

// The operator's own name where the node uses another one for it.
std::string nameOf(const Operator& op) {
  std::string_view schema = op.record().schema;
  return std::string(schema.substr(0, schema.find_first_of(".(")));
}

}  // namespace

bool isCast(const Node* node) {
  const Operator* op = node->maybeOperator();
  if (!op || op->form() != Operator::Form::Base) return false;
  const FunctionSchema& schema = op->schema();
  if (schema.name() == "aten::type_as") return true;
  if (schema.name() != "aten::to") return false;
  if (schema.overload() != "dtype" && schema.overload() != "other") return false;
  // A copy that is asked for, or a memory format, is for the operator.
  auto copy = constantOf(node->input(3)), format = constantOf(node->input(4));
  return copy && copy->isBool() && !copy->toBool() && format && format->isNone();
}
std::optional<DType> castOf(const Node* node, const TypeOf& type_of) {
  if (node->input(1)->type()->kind() == TypeKind::Tensor) return type_of(node->input(1)).dtype;
  auto number = constantOf(node->input(1));
  return number && number->isInt() ? dtypeFromNumber(number->toInt()) : std::nullopt;
}
PointwiseCall castTo(const Value* operand, DType dtype) {
  return {&kScalar<Identity>, {operand}, dtype, {}, true};
}

bool isPointwise(const Node* node) {
  const Operator* op = node->maybeOperator();
  if (!op || op->form() != Operator::Form::Base || node->outputs().size() != 1 ||
      node->output()->type()->kind() != TypeKind::Tensor) {
    return false;
  }
  if (op->schema().overload() == "decimals") return false;
  return op->record().scalar || rules().count(nameOf(*op)) != 0;
}

bool isPointwiseWrite(const Node* node) {
  const Operator* op = node->maybeOperator();
  if (!op || op->form() != Operator::Form::Inplace || node->outputs().size() != 1 ||
      node->input(0)->type()->kind() != TypeKind::Tensor || op->schema().overload() == "decimals") {
    return false;
  }
  return op->record().scalar || rules().count(nameOf(*op)) != 0;
}

std::optional<PointwiseCall> selectPointwise(const Node* node, const TypeOf& type_of) {
  if (!isPointwise(node)) return std::nullopt;
  const Operator& op = node->getOperator();
  Arguments arguments(node, type_of);
  if (auto it = rules().find(nameOf(op)); it != rules().end()) {
    Result selected = it->second(arguments);
    if (selected) selected->ranges = arguments.takeRanges();
    return selected;
  }
  const ScalarDefinition* definition = op.record().scalar;
  if (definition->num_inputs != arguments.size()) return std::nullopt;
  PointwiseCall result{definition, {}, std::nullopt};
  for (size_t i = 0; i < arguments.size(); ++i) {
    if ((definition->param_inputs >> i & 1) != 0 && !fits(arguments, i, arguments.type(0).dtype)) {
      return std::nullopt;
    }
    result.operands.push_back(arguments.operand(i));
  }
  result.ranges = arguments.takeRanges();
  return result;
}

}  // namespace wick::loop
