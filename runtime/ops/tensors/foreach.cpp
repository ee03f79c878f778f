// Operators on lists of tensors, element by element: _foreach_NAME calls aten::NAME for each
// tensor, with the other lists' elements of the same index.
#include <mutex>
#include <unordered_map>

#include "runtime/ops/call.h"

namespace wick::ops {

namespace {

// The operator that _foreach_NAME[_].OVERLOAD calls for each tensor. In-place forms call NAME_.
const Operator& elementOperator(const Operator& foreach) {
  static std::mutex mutex;
  static std::unordered_map<const Operator*, const Operator*> known;
  std::lock_guard lock(mutex);
  auto [it, inserted] = known.try_emplace(&foreach, nullptr);
  if (!it->second) {
    constexpr std::string_view kPrefix = "aten::_foreach_";
    const FunctionSchema& schema = foreach.schema();
    std::string name = "aten::" + schema.name().substr(kPrefix.size());
    std::string_view overload = schema.overload();
    Symbol symbol = Symbol::fromQualString(name);
    OperatorRegistry& registry = OperatorRegistry::instance();
    const Operator* found = nullptr;
    if (overload == "Scalar" || overload == "ScalarList") found = registry.find(symbol, "Scalar");
    if (!found && overload == "List") found = registry.find(symbol, "Tensor");
    if (!found) found = registry.find(symbol, "");
    // Without a form that writes in place the result is copied.
    if (!found && name.ends_with("_")) {
      name.pop_back();
      found = registry.find(Symbol::fromQualString(name), "");
    }
    WICK_ASSERT(found, "{} has no operator for one tensor", schema.str());
    it->second = found;
  }
  return *it->second;
}

// The i-th element of a list, or a value that all tensors share.
const IValue& elementAt(const IValue& argument, size_t i) {
  return argument.isList() ? argument.elements()[i] : argument;
}

void checkLengths(const char* op, const CallFrame& frame) {
  size_t count = frame.args[0].elements().size();
  WICK_CHECK(count > 0, "{}: Tensor list must have at least one tensor.", op);
  for (size_t i = 1; i < frame.num_args; ++i) {
    if (!frame.args[i].isList()) continue;
    size_t other = frame.args[i].elements().size();
    WICK_CHECK(other == count, "{}: lists must have the same number of elements, got {} and {}", op,
               count, other);
  }
}

void foreachKernel(CallFrame& frame) {
  const FunctionSchema& schema = frame.op->schema();
  checkLengths(schema.name().c_str(), frame);
  const Operator& element = elementOperator(*frame.op);
  std::vector<IValue> results;
  for (size_t i = 0; i < frame.args[0].elements().size(); ++i) {
    std::vector<IValue> args;
    for (size_t a = 0; a < frame.num_args; ++a) args.push_back(elementAt(frame.args[a], i));
    // What the list's schema leaves out takes its default.
    for (size_t a = args.size(); a < element.schema().arguments().size(); ++a) {
      const auto& value = element.schema().arguments()[a].default_value;
      WICK_ASSERT(value, "{} needs more arguments", element.schema().str());
      args.push_back(*value);
    }
    IValue result;
    element.call(args.data(), args.size(), &result, 1);
    if (frame.num_results == 0) {
      const Tensor& self = frame.args[0].elements()[i].toTensor();
      if (!result.toTensor().isSame(self)) self.copyFrom(result.toTensor());
    }
    results.push_back(std::move(result));
  }
  if (frame.num_results > 0) {
    frame.results[0] = IValue(makeList(types::Tensor(), std::move(results)));
  }
}

std::vector<Tensor> foreachNorm(const std::vector<Tensor>& self, const Scalar& ord,
                                std::optional<DType> dtype) {
  static const OperatorHandle kNorm("aten::norm", "Scalar");
  static const OperatorHandle kNormAs("aten::norm", "ScalarOpt_dtype");
  WICK_CHECK(!self.empty(), "aten::_foreach_norm: Tensor list must have at least one tensor.");
  std::vector<Tensor> norms;
  for (const Tensor& t : self) norms.push_back(dtype ? kNormAs(t, ord, *dtype) : kNorm(t, ord));
  return norms;
}

#define WICK_FOREACH(name, overload, arguments)                                                   \
  {"aten::_foreach_" name overload "(Tensor[] self" arguments ") -> Tensor[]", &foreachKernel,    \
   kNeutral},                                                                                     \
  {                                                                                               \
    "aten::_foreach_" name "_" overload "(Tensor(a!)[] self" arguments ") -> ()", &foreachKernel, \
        kNeutral                                                                                  \
  }
#define WICK_FOREACH_UNARY(name) WICK_FOREACH(name, "", "")
#define WICK_FOREACH_ARITHMETIC(name, alpha)                 \
  WICK_FOREACH(name, ".Scalar", ", Scalar scalar"),          \
      WICK_FOREACH(name, ".List", ", Tensor[] other" alpha), \
      WICK_FOREACH(name, ".ScalarList", ", Scalar[] scalars")
#define WICK_FOREACH_TERNARY(name)                                                       \
  WICK_FOREACH(name, ".Scalar", ", Tensor[] tensor1, Tensor[] tensor2, Scalar value=1"), \
      WICK_FOREACH(name, ".ScalarList", ", Tensor[] tensor1, Tensor[] tensor2, Scalar[] scalars")

constexpr OperatorRecord kForeachRecords[] = {
    WICK_FOREACH_UNARY("abs"),
    WICK_FOREACH_UNARY("acos"),
    WICK_FOREACH_UNARY("asin"),
    WICK_FOREACH_UNARY("atan"),
    WICK_FOREACH_UNARY("ceil"),
    WICK_FOREACH_UNARY("cos"),
    WICK_FOREACH_UNARY("cosh"),
    WICK_FOREACH_UNARY("erf"),
    WICK_FOREACH_UNARY("erfc"),
    WICK_FOREACH_UNARY("exp"),
    WICK_FOREACH_UNARY("expm1"),
    WICK_FOREACH_UNARY("floor"),
    WICK_FOREACH_UNARY("frac"),
    WICK_FOREACH_UNARY("lgamma"),
    WICK_FOREACH_UNARY("log"),
    WICK_FOREACH_UNARY("log10"),
    WICK_FOREACH_UNARY("log1p"),
    WICK_FOREACH_UNARY("log2"),
    WICK_FOREACH_UNARY("neg"),
    WICK_FOREACH_UNARY("reciprocal"),
    WICK_FOREACH_UNARY("round"),
    WICK_FOREACH_UNARY("sigmoid"),
    WICK_FOREACH_UNARY("sin"),
    WICK_FOREACH_UNARY("sinh"),
    WICK_FOREACH_UNARY("sqrt"),
    WICK_FOREACH_UNARY("tan"),
    WICK_FOREACH_UNARY("tanh"),
    WICK_FOREACH_UNARY("trunc"),
    {"aten::_foreach_zero(Tensor[] self) -> Tensor[] self_out", &foreachKernel, kNeutral},
    {"aten::_foreach_zero_(Tensor(a!)[] self) -> ()", &foreachKernel, kNeutral},
    WICK_FOREACH_ARITHMETIC("add", ", *, Scalar alpha=1"),
    WICK_FOREACH_ARITHMETIC("sub", ", *, Scalar alpha=1"),
    WICK_FOREACH_ARITHMETIC("mul", ""),
    WICK_FOREACH_ARITHMETIC("div", ""),
    WICK_FOREACH("maximum", ".List", ", Tensor[] other"),
    WICK_FOREACH("minimum", ".List", ", Tensor[] other"),
    WICK_FOREACH_TERNARY("addcdiv"),
    WICK_FOREACH_TERNARY("addcmul"),
    {"aten::_foreach_norm.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]",
     WICK_KERNEL(foreachNorm), kNeutral},
};

const RegisterOperators kForeachRegistered(kForeachRecords);

}  // namespace

}  // namespace wick::ops
