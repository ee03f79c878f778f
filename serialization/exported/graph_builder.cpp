#include "serialization/exported/graph_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <complex>
#include <functional>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/value_conversions.h"
#include "frontend/builtin_functions.h"
#include "frontend/schema_matching.h"
#include "ir/operator.h"
#include "serialization/exported/read_schema.h"

namespace wick::exported {
namespace {

// Operators that read sizes as numbers have names of their own in exported graphs.
struct OtherName {
  std::string_view target;
  std::string_view name;
};
constexpr OtherName kOtherNames[] = {
    {"aten.sym_size", "aten::size"},
    {"aten.sym_stride", "aten::stride"},
    {"aten.sym_numel", "aten::numel"},
    {"aten.sym_storage_offset", "aten::storage_offset"},
    {"aten.sym_is_contiguous", "aten::is_contiguous"},
    {"aten._local_scalar_dense", "aten::item"},
    {"aten.lift_fresh_copy", "aten::clone"},
    {"aten.lift_fresh", "aten::alias"},
};

// Functions of Python over numbers, and the operators that compute them.
constexpr OtherName kNumberFunctions[] = {
    {"_operator.add", "aten::add"},
    {"_operator.sub", "aten::sub"},
    {"_operator.mul", "aten::mul"},
    {"_operator.truediv", "aten::div"},
    {"_operator.floordiv", "aten::floordiv"},
    {"_operator.mod", "aten::remainder"},
    {"_operator.pow", "aten::pow"},
    {"_operator.neg", "aten::neg"},
    {"_operator.eq", "aten::eq"},
    {"_operator.ne", "aten::ne"},
    {"_operator.lt", "aten::lt"},
    {"_operator.le", "aten::le"},
    {"_operator.gt", "aten::gt"},
    {"_operator.ge", "aten::ge"},
    {"_operator.and_", "aten::__and__"},
    {"_operator.or_", "aten::__or__"},
    {"_operator.xor", "aten::__xor__"},
    {"_operator.lshift", "aten::__lshift__"},
    {"_operator.rshift", "aten::__rshift__"},
    {"_operator.not_", "aten::__not__"},
    {"_operator.abs", "prim::abs"},
    {"math.ceil", "aten::ceil"},
    {"math.floor", "aten::floor"},
    {"math.trunc", "aten::Int"},
    {"math.sqrt", "aten::sqrt"},
    {"builtins.abs", "prim::abs"},
    {"builtins.round", "aten::round"},
    {"builtins.max", "prim::max"},
    {"builtins.min", "prim::min"},
    {"torch.sym_int", "aten::Int"},
    {"torch.sym_float", "aten::Float"},
    {"torch.sym_not", "aten::__not__"},
    {"torch.sym_max", "prim::max"},
    {"torch.sym_min", "prim::min"},
};

// Operators whose results lie in memory as the library behind them likes. Exported graphs take views that rely on it.
constexpr std::string_view kAttention[] = {
    "aten::scaled_dot_product_attention",
    "aten::_scaled_dot_product_flash_attention",
    "aten::_scaled_dot_product_flash_attention_for_cpu",
    "aten::_scaled_dot_product_efficient_attention",
    "aten::_scaled_dot_product_cudnn_attention",
};

constexpr size_t kMaxEmitted = 1 << 20;

constexpr std::string_view kOperators = "torch.ops.";
constexpr std::string_view kHigherOrder = "torch.ops.higher_order.";
constexpr std::string_view kSymFunction = "torch._sym_";

TypePtr elementOf(const TypePtr& type) {
  if (!type) return nullptr;
  if (const auto* list = type->as<ListType>()) return list->element();
  if (const auto* optional = type->as<OptionalType>()) return elementOf(optional->element());
  return nullptr;
}

TypePtr withoutOptional(const TypePtr& type) {
  const auto* optional = type ? type->as<OptionalType>() : nullptr;
  return optional ? optional->element() : type;
}

TypePtr elementTypeOf(const Operand& list) {
  TypePtr type = types::Tensor();
  switch (list.element) {
    case OperandKind::Int:
    case OperandKind::SymInt:
      type = types::Int();
      break;
    case OperandKind::Float:
    case OperandKind::SymFloat:
      type = types::Float();
      break;
    case OperandKind::Bool:
    case OperandKind::SymBool:
      type = types::Bool();
      break;
    case OperandKind::String:
      type = types::String();
      break;
    case OperandKind::List:
      type = types::List(list.elements.empty() ? types::Int() : elementTypeOf(list.elements[0]));
      break;
    default:
      break;
  }
  return list.optional ? types::Optional(type) : type;
}

// Whether an argument can be given by keyword alone, which files of older versions do not say.
bool isByKeyword(const Operator* op, Symbol function, const std::string& argument) {
  const auto tells = [&](const FunctionSchema& schema) {
    const std::optional<size_t> index = schema.argumentIndex(argument);
    return index && schema.arguments()[*index].kwarg_only;
  };
  if (op) return tells(op->schema());
  const auto any = [&](const auto& overloads) {
    return std::ranges::any_of(overloads, [&](auto* each) { return tells(each->schema()); });
  };
  return any(OperatorRegistry::instance().overloads(function)) ||
         any(builtinFunctionsNamed(function));
}

}  // namespace

std::optional<OperatorName> operatorNamed(std::string_view target) {
  if (!target.starts_with(kOperators)) return std::nullopt;
  target.remove_prefix(kOperators.size());
  // The namespace may have dots of its own.
  const size_t before_overload = target.rfind('.');
  if (before_overload == std::string_view::npos || before_overload == 0) return std::nullopt;
  const size_t before_name = target.rfind('.', before_overload - 1);
  if (before_name == std::string_view::npos) return std::nullopt;
  OperatorName out;
  out.overload = target.substr(before_overload + 1);
  if (out.overload == "default") out.overload.clear();
  const std::string_view packet = target.substr(0, before_overload);
  const auto* other = std::ranges::find(kOtherNames, packet, &OtherName::target);
  out.symbol = Symbol::fromQualString(
      other != std::end(kOtherNames)
          ? std::string(other->name)
          : fmt::format("{}::{}", packet.substr(0, before_name), packet.substr(before_name + 1)));
  return out;
}

bool isKnownTarget(const std::string& target) {
  const std::string_view view = target;
  if (view.starts_with(kHigherOrder)) {
    return isHigherOrderOperator(view.substr(kHigherOrder.size()));
  }
  if (const std::optional<OperatorName> name = operatorNamed(target)) {
    return isBuiltinOperator(name->symbol);
  }
  if (view.starts_with(kSymFunction)) {
    return isBuiltinOperator(Symbol::aten(view.substr(kSymFunction.size())));
  }
  return target == "torch.sym_sum" || target == "torch.sym_ite" ||
         std::ranges::find(kNumberFunctions, view, &OtherName::target) !=
             std::end(kNumberFunctions);
}

void GraphBuilder::fail(const std::string& message) const {
  throw CompileError(graph_.currentRange(), message);
}

Value* GraphBuilder::valueNamed(const std::string& name) const {
  const auto found = values_.find(name);
  if (objects_.contains(name)) {
    fail(fmt::format("'{}' is an object of a class of C++ (torchbind), which Wick does not have",
                     name));
  }
  if (found == values_.end()) fail(fmt::format("nothing defines the value '{}'", name));
  return found->second;
}

Value* GraphBuilder::constantOf(const Operand& operand, const TypePtr& wanted) {
  const TypeKind kind = wanted ? withoutOptional(wanted)->kind() : TypeKind::Any;
  switch (operand.kind) {
    case OperandKind::None:
      return graph_.insertNode(graph_.createNone())->output();
    case OperandKind::Int:
      if (kind == TypeKind::Float) {
        return graph_.insertConstant(IValue(static_cast<double>(operand.integer)));
      }
      if (kind == TypeKind::Bool) return graph_.insertConstant(IValue(operand.integer != 0));
      return graph_.insertConstant(IValue(operand.integer));
    case OperandKind::Bool:
      // TorchScript's bools are no numbers.
      if (kind == TypeKind::Int || kind == TypeKind::Number) {
        return graph_.insertConstant(IValue(operand.integer));
      }
      return graph_.insertConstant(IValue(operand.integer != 0));
    case OperandKind::Float:
      return graph_.insertConstant(IValue(operand.real));
    case OperandKind::String:
      return graph_.insertConstant(IValue(operand.text));
    case OperandKind::Complex:
      return graph_.insertConstant(IValue(std::complex<double>(operand.real, operand.imaginary)));
    case OperandKind::ScalarType: {
      const std::optional<DType> dtype = dtypeOf(operand.integer);
      if (!dtype) {
        fail(fmt::format("tensors of the dtype {} are not supported", dtypeName(operand.integer)));
      }
      return graph_.insertConstant(IValue(static_cast<int64_t>(*dtype)));
    }
    case OperandKind::MemoryFormat: {
      const std::optional<int64_t> format = memoryFormatOf(operand.integer);
      if (!format) fail(fmt::format("{} is no memory format", operand.integer));
      return graph_.insertConstant(IValue(*format));
    }
    case OperandKind::Layout: {
      const std::optional<int64_t> layout = layoutOf(operand.integer);
      if (!layout) fail(fmt::format("{} is no layout", operand.integer));
      return graph_.insertConstant(IValue(*layout));
    }
    case OperandKind::Device: {
      const std::optional<Device> device = devices_.find(operand.text);
      if (!device) fail(fmt::format("'{}' is no device", operand.text));
      return graph_.insertConstant(IValue(*device));
    }
    default:
      fail("an argument of this kind is not supported here");
  }
}

Value* GraphBuilder::listOf(const Operand& operand, const TypePtr& wanted) {
  TypePtr element = elementOf(wanted);
  if (!element || element->hasFreeVariables()) element = elementTypeOf(operand);
  std::vector<Value*> elements;
  for (const Operand& e : operand.elements) elements.push_back(valueOf(e, element));
  // Elements that are of another type than is wanted make a list of theirs, for another overload.
  for (const Value* e : elements) {
    if (!e->type()->isSubtypeOf(*element)) element = elements.front()->type();
  }
  for (const Value* e : elements) {
    if (!e->type()->isSubtypeOf(*element)) {
      fail(fmt::format("a list holds {} and {}", element->annotation(), e->type()->annotation()));
    }
  }
  return graph_.insertNode(graph_.createList(element, elements))->output();
}

Value* GraphBuilder::valueOf(const Operand& operand, const TypePtr& wanted) {
  if (operand.kind == OperandKind::List) return listOf(operand, wanted);
  if (!operand.isName()) return constantOf(operand, wanted);
  Value* value = valueNamed(operand.text);
  const TypeKind kind = wanted ? withoutOptional(wanted)->kind() : TypeKind::Any;
  if (kind == TypeKind::Float && value->type()->kind() == TypeKind::Int) {
    return emitBuiltin(graph_.currentRange(), graph_, aten::Float, {value});
  }
  if (kind == TypeKind::Number && value->type()->kind() == TypeKind::Bool) {
    return emitBuiltin(graph_.currentRange(), graph_, aten::Int, {value});
  }
  return value;
}

void GraphBuilder::emit(const GraphRecord& graph) {
  const auto* outer = std::exchange(tensors_, &graph.tensors);
  for (const NodeRecord& node : graph.nodes) {
    // The condition of a loop stands twice in the graph, and such loops may lie in each other.
    if (++emitted_ > kMaxEmitted)
      fail(fmt::format("the graph has more than {} nodes", kMaxEmitted));
    emitNode(node);
  }
  tensors_ = outer;
}

// Returns the result with its dimensions in memory in the order that they had in the example.
Value* GraphBuilder::inRecordedOrder(const Operand& output, Value* result) {
  if (output.kind != OperandKind::Tensor || !tensors_) return result;
  const auto found = tensors_->find(output.text);
  if (found == tensors_->end()) return result;
  const TensorMeta& meta = found->second;
  std::vector<int64_t> order;
  for (size_t d = 0; d < meta.strides.size(); ++d) {
    const Size& stride = meta.strides[d];
    if (!stride.number && !stride.hint) return result;
    order.push_back(static_cast<int64_t>(d));
  }
  const auto strideOf = [&](int64_t d) {
    const Size& stride = meta.strides[static_cast<size_t>(d)];
    return stride.number.value_or(stride.hint.value_or(0));
  };
  std::ranges::stable_sort(order, std::greater<>(), strideOf);
  if (std::ranges::is_sorted(order)) return result;
  std::vector<int64_t> back(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  const auto permuted = [&](Value* value, const std::vector<int64_t>& dims) {
    Value* list = graph_.insertConstant(IValue(dims));
    return emitBuiltin(graph_.currentRange(), graph_, Symbol::aten("permute"), {value, list});
  };
  Value* dense = emitBuiltin(graph_.currentRange(), graph_, Symbol::aten("contiguous"),
                             {permuted(result, order)});
  return permuted(dense, back);
}

void GraphBuilder::emitCopy(Value* to, Value* from) {
  emitBuiltin(graph_.currentRange(), graph_, Symbol::aten("copy_"), {to, from});
}

void GraphBuilder::emitNode(const NodeRecord& node) {
  const RangeGuard range(&graph_, listing_.rangeOf(node));
  const std::string_view target = node.target;
  if (target.starts_with(kHigherOrder)) {
    emitHigherOrder(node, target.substr(kHigherOrder.size()));
  } else if (target.starts_with(kOperators)) {
    emitOperator(node);
  } else {
    emitNumbers(node);
  }
}

void GraphBuilder::emitOperator(const NodeRecord& node) {
  const std::optional<OperatorName> name = operatorNamed(node.target);
  if (!name) fail(fmt::format("'{}' is no name of an operator", node.target));
  std::vector<Value*> results = call(node, name->symbol, name->overload, node.inputs);
  const bool of_library =
      std::ranges::find(kAttention, name->symbol.qualString()) != std::end(kAttention);
  if (of_library && !results.empty() && !node.outputs.empty()) {
    results[0] = inRecordedOrder(node.outputs[0], results[0]);
  }
  bindOutputs(node, results);
}

// Fills `arguments` for the schema; false when an argument lacks or does not fit without a conversion between numbers and tensors.
bool GraphBuilder::fitSchema(const FunctionSchema& schema, std::span<const NamedOperand> inputs,
                             std::vector<Value*>& arguments) {
  std::vector<bool> used(inputs.size());
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const wick::Argument& argument = schema.arguments()[i];
    size_t found = inputs.size();
    for (size_t j = 0; j < inputs.size(); ++j) {
      if (inputs[j].name == argument.name) found = j;
    }
    // Names have changed between versions, positions have not.
    if (found == inputs.size() && i < inputs.size() && inputs[i].by_position &&
        !schema.argumentIndex(inputs[i].name)) {
      found = i;
    }
    if (found == inputs.size()) {
      if (!argument.default_value) return false;
      arguments.push_back(
          graph_.insertConstant(*argument.default_value,
                                argument.default_value->isNone() ? types::None() : argument.type));
      continue;
    }
    used[found] = true;
    Value* value = valueOf(inputs[found].operand, argument.type);
    value = tryConvertToType(graph_.currentRange(), graph_, argument.type, value,
                             ImplicitConversions::TuplesToLists);
    if (!value->type()->isSubtypeOf(*argument.type)) return false;
    arguments.push_back(value);
  }
  return std::ranges::find(used, false) == used.end();
}

// A tensor that is filled with a boolean, and no dtype is given, is one of booleans; numbers of TorchScript do not tell.
std::optional<NamedOperand> GraphBuilder::impliedDType(const Operator* op,
                                                       std::span<const NamedOperand> inputs) {
  if (!op || !op->schema().argumentIndex("dtype") || op->schema().argumentIndex("self")) {
    return std::nullopt;
  }
  const auto isNamed = [](const char* name) {
    return [name](const NamedOperand& input) { return input.name == name; };
  };
  const auto filled = std::ranges::find_if(inputs, isNamed("fill_value"));
  if (filled == inputs.end() || std::ranges::any_of(inputs, isNamed("dtype"))) return std::nullopt;
  if (filled->operand.kind != OperandKind::Bool && filled->operand.kind != OperandKind::SymBool) {
    return std::nullopt;
  }
  constexpr int64_t kBool = 12;  // the schema's number
  NamedOperand dtype;
  dtype.name = "dtype";
  dtype.by_position = false;
  dtype.operand.kind = OperandKind::ScalarType;
  dtype.operand.integer = kBool;
  return dtype;
}

std::vector<Value*> GraphBuilder::call(const NodeRecord& node, Symbol name,
                                       std::string_view overload,
                                       std::span<const NamedOperand> inputs) {
  const Operator* op = OperatorRegistry::instance().find(name, overload);
  std::vector<NamedOperand> completed;
  if (auto dtype = impliedDType(op, inputs)) {
    completed.assign(inputs.begin(), inputs.end());
    completed.push_back(std::move(*dtype));
    inputs = completed;
  }
  std::vector<Value*> arguments;
  if (op && !op->schema().isVararg() && !op->schema().isVarret() &&
      fitSchema(op->schema(), inputs, arguments)) {
    const std::vector<wick::Argument>& returns = op->schema().returns();
    if (std::ranges::none_of(returns, [](const auto& r) { return r.type->hasFreeVariables(); })) {
      Node* made = graph_.insertNode(graph_.create(name, arguments, returns.size()));
      for (size_t i = 0; i < returns.size(); ++i) made->output(i)->setType(returns[i].type);
      if (made->maybeOperator()) return made->outputs();
      made->destroy();
    }
  }
  // Numbers in place of tensors, and operators that are script functions here.
  std::vector<NamedValue> by_position;
  std::vector<NamedValue> by_name;
  const SourceRange& range = graph_.currentRange();
  for (const NamedOperand& input : inputs) {
    Value* value = valueOf(input.operand);
    if (input.by_position && by_name.empty() && !isByKeyword(op, name, input.name)) {
      by_position.emplace_back(range, value);
    } else {
      by_name.emplace_back(range, input.name, value);
    }
  }
  if (!isBuiltinOperator(name)) {
    fail(fmt::format("Unknown builtin op: {}; the program calls {}", name.qualString(),
                     node.target));
  }
  Value* result = emitBuiltinCall(range, graph_, name, by_position, by_name);
  if (result->type()->kind() == TypeKind::None) return {};
  if (result->type()->kind() == TypeKind::Tuple) {
    return graph_.insertNode(graph_.createTupleUnpack(result))->outputs();
  }
  return {result};
}

void GraphBuilder::emitNumbers(const NodeRecord& node) {
  const SourceRange& range = graph_.currentRange();
  std::vector<Value*> arguments;
  for (const NamedOperand& input : node.inputs) arguments.push_back(valueOf(input.operand));
  const auto builtin = [&](std::string_view name, const std::vector<Value*>& values) {
    return emitBuiltin(range, graph_, Symbol::fromQualString(name), values);
  };
  if (node.target == "torch.sym_sum" && arguments.size() == 1) {
    bindOutputs(node, {builtin("aten::sum", arguments)});
    return;
  }
  if (node.target == "torch.sym_ite" && arguments.size() == 3) {
    Node* choice = graph_.insertNode(graph_.create(prim::If, {arguments[0]}, 1));
    choice->addBlock()->registerOutput(arguments[1]);
    choice->addBlock()->registerOutput(arguments[2]);
    choice->output()->setType(arguments[1]->type());
    bindOutputs(node, {choice->output()});
    return;
  }
  if (std::string_view(node.target).starts_with(kSymFunction) && arguments.size() == 1) {
    const std::string name = "aten::" + node.target.substr(kSymFunction.size());
    bindOutputs(node, {builtin(name, arguments)});
    return;
  }
  const auto* found = std::ranges::find(kNumberFunctions, node.target, &OtherName::target);
  if (found == std::end(kNumberFunctions)) {
    fail(fmt::format(
        "Unknown builtin op: {}; exported programs may call it, Wick has no function of this name",
        node.target));
  }
  bindOutputs(node, {builtin(found->name, arguments)});
}

Value* GraphBuilder::asKind(OperandKind kind, Value* value) {
  const TypeKind type = value->type()->kind();
  const auto converted = [&](Symbol name) {
    return emitBuiltin(graph_.currentRange(), graph_, name, {value});
  };
  if (kind == OperandKind::SymInt && type != TypeKind::Int) return converted(aten::Int);
  if (kind == OperandKind::SymFloat && type != TypeKind::Float) return converted(aten::Float);
  if (kind == OperandKind::SymBool && type != TypeKind::Bool) return converted(aten::Bool);
  return value;
}

void GraphBuilder::bindElements(const Operand& output, Value* list) {
  if (list->type()->kind() != TypeKind::List) {
    fail(fmt::format("the operator gives {}, and the program wants a list",
                     list->type()->annotation()));
  }
  Node* elements = graph_.insertNode(graph_.createListUnpack(list, output.elements.size()));
  for (size_t i = 0; i < output.elements.size(); ++i) {
    bindOutput(output.elements[i], elements->output(i));
  }
}

void GraphBuilder::bindOutput(const Operand& output, Value* result) {
  if (output.kind == OperandKind::List) return bindElements(output, result);
  if (!output.isName()) return;  // None, or a constant that nobody reads
  bind(output.text, asKind(output.kind, result));
}

void GraphBuilder::bindOutputs(const NodeRecord& node, const std::vector<Value*>& results) {
  // One list of several results stands for these.
  if (node.outputs.size() == 1 && node.outputs[0].kind == OperandKind::List && results.size() > 1) {
    const std::vector<Operand>& elements = node.outputs[0].elements;
    if (elements.size() != results.size()) {
      fail(fmt::format("the operator gives {} results, and the program wants {}", results.size(),
                       elements.size()));
    }
    for (size_t i = 0; i < results.size(); ++i) bindOutput(elements[i], results[i]);
    return;
  }
  if (results.size() < node.outputs.size()) {
    fail(fmt::format("the operator gives {} results, and the program wants {}", results.size(),
                     node.outputs.size()));
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) bindOutput(node.outputs[i], results[i]);
}

}  // namespace wick::exported
