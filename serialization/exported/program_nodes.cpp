// The nodes of a program for torch.export.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/error.h"
#include "ir/operator.h"
#include "serialization/exported/program_writer.h"

namespace wick::exported {
namespace {

// Operators over numbers, and the functions of Python that compute them in exported programs.
struct NumberFunction {
  std::string_view name;
  const char* target;
};
constexpr NumberFunction kWrittenFunctions[] = {
    {"aten::add", "_operator.add"},
    {"aten::sub", "_operator.sub"},
    {"aten::mul", "_operator.mul"},
    {"aten::div", "_operator.truediv"},
    {"aten::floordiv", "_operator.floordiv"},
    {"aten::floor_divide", "_operator.floordiv"},
    {"aten::remainder", "_operator.mod"},
    {"aten::neg", "_operator.neg"},
    {"aten::eq", "_operator.eq"},
    {"aten::ne", "_operator.ne"},
    {"aten::lt", "_operator.lt"},
    {"aten::le", "_operator.le"},
    {"aten::gt", "_operator.gt"},
    {"aten::ge", "_operator.ge"},
    {"prim::max", "torch.sym_max"},
    {"prim::min", "torch.sym_min"},
    {"aten::ceil", "math.ceil"},
    {"aten::floor", "math.floor"},
    {"aten::sqrt", "torch._sym_sqrt"},
    {"aten::__not__", "torch.sym_not"},
    {"aten::__and__", "_operator.and_"},
    {"aten::__or__", "_operator.or_"},
};

// Overloads that TorchScript has for itself, and those of PyTorch's operators that do the same.
struct OtherOverload {
  std::string_view name;
  std::string_view overload;
  const char* target;
};
constexpr OtherOverload kOtherOverloads[] = {
    {"aten::to", "prim_dtype", "torch.ops.aten.to.dtype"},
    {"aten::to", "prim_Device", "torch.ops.aten.to.dtype_layout"},
};

bool isPlainNumber(const Value* value) {
  const TypeKind kind = value->type()->kind();
  return kind == TypeKind::Int || kind == TypeKind::Float || kind == TypeKind::Bool ||
         kind == TypeKind::Number;
}

std::string baseName(const Node& node) {
  return std::string(node.kind().name());
}

}  // namespace

void ProgramWriter::writeBlock(const Block& block) {
  for (const Node* node : block.nodes()) {
    if (isNeeded(*node)) writeNode(*node);
  }
}

void ProgramWriter::writeNode(const Node& node) {
  const Symbol kind = node.kind();
  if (kind == prim::Constant || kind == prim::ListConstruct || kind == prim::TupleConstruct ||
      kind == prim::DictConstruct || kind == prim::ListUnpack || kind == prim::TupleUnpack ||
      kind == prim::TupleIndex || kind == prim::unchecked_cast || kind == prim::Uninitialized ||
      kind == Symbol::aten("_unwrap_optional") || kind == Symbol::aten("warn")) {
    return;
  }
  if (kind == Symbol::aten("__getitem__") && terms_.contains(node.input(0))) return;
  const bool all_fixed =
      !node.outputs().empty() &&
      std::ranges::all_of(node.outputs(), [&](const Value* v) { return fixed(v); });
  const Operator* op = node.maybeOperator();
  if (all_fixed && !(op && op->mayWrite(node))) return;
  if (writeListChange(node)) return;
  if (kind == prim::GetAttr || kind == prim::SetAttr) {
    fail(&node, fmt::format("the program writes to the attribute '{}' of a module",
                            node.ivalue(attr::name).toString()));
  }
  if (kind == prim::If) return writeIf(node);
  if (kind == prim::Loop) return writeLoop(node);
  const bool gives_numbers =
      node.outputs().size() == 1 && isPlainNumber(node.output()) && !fixed(node.output());
  if (gives_numbers || kind == Symbol::prim("NumToTensor") || kind == Symbol::aten("size")) {
    return writeNumbers(node);
  }
  if (!op) fail(&node, fmt::format("{} has no form in exported programs", kind.qualString()));
  if (writeAutocast(node)) return;
  writeOperator(node);
}

// Whether the third input, a factor of the second one, is 1.
bool ProgramWriter::hasFactorOne(const Node& node) {
  const IValue* factor = node.inputs().size() == 3 ? fixed(node.input(2)) : nullptr;
  return factor && factor->isInt() && factor->toInt() == 1;
}

// A tensor without dimensions that is computed from sizes, as traces have them, as a number.
ProgramWriter::Term ProgramWriter::numberOf(const Value* tensor, const Node* user) {
  const Node* node = tensor->node();
  const Symbol kind = node->kind();
  if (kind == Symbol::prim("NumToTensor")) return termOf(node->input(0));
  const auto* found =
      std::ranges::find(kWrittenFunctions, kind.qualString(), &NumberFunction::name);
  const bool of_two = found != std::end(kWrittenFunctions) && node->inputs().size() >= 2 &&
                      (node->inputs().size() == 2 || hasFactorOne(*node));
  if (!of_two || !followsFromSizes(tensor)) {
    fail(user, "a number of a tensor that is not computed from sizes by simple arithmetic");
  }
  OrderedJson inputs = OrderedJson::array();
  std::vector<KnownArgument> known;
  for (size_t i = 0; i < 2; ++i) {
    const Value* operand = node->input(i);
    Term term;
    if (const IValue* constant = fixed(operand)) {
      term = constantTerm(*constant, operand);
    } else if (operand->type()->kind() != TypeKind::Tensor) {
      term = termOf(operand);
    } else if (operand->node()->kind() == prim::Constant) {
      const Tensor value = constantOf(operand)->toTensor();
      if (value.numel() != 1) fail(user, "a number of a tensor with several elements");
      term.operand = isFloating(value.dtype()) ? tagged("as_float", value.item<double>())
                                               : tagged("as_int", value.item<int64_t>());
      if (!isFloating(value.dtype())) term.number = SizeArithmetic::number(value.item<int64_t>());
    } else {
      term = numberOf(operand, user);
    }
    inputs.push_back(namedInput(i == 0 ? "a" : "b", term.operand, true));
    known.emplace_back().number = term.number;
  }
  // Tensors of integers are divided towards zero or rounded down; sizes are not negative.
  const std::string name = unique(baseName(*node));
  const bool is_int = isIntegral(exampleOf(tensor).dtype, false);
  std::vector<int64_t> in_runs;
  for (const RecordedRun& run : runs_) {
    const Tensor& number = run.find(tensor)->tensor->number;
    if (!is_int || !number.defined()) fail(user, "a number of a tensor that is no single integer");
    in_runs.push_back(number.item<int64_t>());
  }
  Term out;
  const bool is_division = kind == Symbol::aten("div");
  out.number = is_division ? std::nullopt : numberByRule(*node, known, fit_.arithmetic());
  if (!out.number || !fit_.gives(*out.number, in_runs)) out.number = fit_.expressionOf(in_runs);
  if (!out.number) fail(user, "a number that is no simple expression of the sizes that change");
  if (out.number->kind == SizeExpression::Kind::Number) {
    out.operand = tagged("as_int", in_runs[0]);
    return out;
  }
  parts_->integers[name] = sizeJson(*out.number, in_runs[0]);
  out.operand = tagged("as_sym_int", tagged("as_name", name));
  OrderedJson outputs = OrderedJson::array();
  outputs.push_back(out.operand);
  addNode(found->target, std::move(inputs), std::move(outputs), name, *node);
  return out;
}

// The least or greatest of sizes and numbers, two by two.
ProgramWriter::Term ProgramWriter::writeExtreme(const Node& node, const char* target,
                                                const std::vector<Term>& numbers) {
  Term out = numbers.front();
  for (size_t i = 1; i < numbers.size(); ++i) {
    const Term& next = numbers[i];
    const SizeArithmetic& math = fit_.arithmetic();
    const SizeExpression number = node.kind() == Symbol::prim("min")
                                      ? math.least(*out.number, *next.number)
                                      : math.most(*out.number, *next.number);
    // One of the two, for all sizes.
    if (number.notation() == out.number->notation()) continue;
    if (number.notation() == next.number->notation()) {
      out = next;
      continue;
    }
    OrderedJson inputs = OrderedJson::array({namedInput("a", out.operand, true)});
    inputs.push_back(namedInput("b", next.operand, true));
    const std::string name = unique(baseName(node));
    parts_->integers[name] =
        sizeJson(number, SizeArithmetic::valueAt(number, fit_.examples()[0]).value_or(0));
    out = Term();
    out.number = number;
    out.operand = tagged("as_sym_int", tagged("as_name", name));
    addNode(target, std::move(inputs), OrderedJson::array({out.operand}), name, node);
  }
  return out;
}

void ProgramWriter::writeNumbers(const Node& node) {
  const Symbol kind = node.kind();
  const Value* output = node.output();
  OrderedJson inputs = OrderedJson::array();
  OrderedJson outputs = OrderedJson::array();
  Term term;
  const auto finish = [&](const std::string& target, const std::string& name) {
    term = output->type()->kind() == TypeKind::Tensor
               ? defineTensor(output, name, SizeSource())
               : defineNumber(output, name,
                              numberByRule(node, knownArguments(node), fit_.arithmetic()));
    outputs.push_back(term.operand);
    addNode(target, std::move(inputs), std::move(outputs), name, node);
    terms_[output] = term;
  };
  if (kind == Symbol::prim("NumToTensor")) {
    inputs.push_back(namedInput("s", operandOf(node.input(0)), true));
    const bool is_int = exampleOf(output).dtype == DType::Long;
    inputs.push_back(namedInput("dtype", tagged("as_scalar_type", is_int ? 5 : 8), false));
    return finish("torch.ops.aten.scalar_tensor.default", unique("scalar_tensor"));
  }
  if (kind == Symbol::aten("size") && output->type()->kind() == TypeKind::List) {
    // One number for each dimension.
    term.makeContainer();
    const auto dims = static_cast<int64_t>(runs_[0].find(output)->elements.size());
    for (int64_t d = 0; d < dims; ++d) {
      std::vector<int64_t> in_runs;
      for (const RecordedRun& run : runs_) {
        in_runs.push_back(run.find(output)->elements.at(static_cast<size_t>(d)).plain.toInt());
      }
      Term part;
      const KnownArgument tensor = knownArgument(node.input(0));
      part.number = tensor.sizes && fit_.gives(tensor.sizes->at(static_cast<size_t>(d)), in_runs)
                        ? (*tensor.sizes)[static_cast<size_t>(d)]
                        : fit_.expressionOf(in_runs);
      if (!part.number) failAtSize(output, "size");
      const OrderedJson size = sizeJson(*part.number, in_runs[0]);
      if (size.contains("as_int")) {
        part.operand = size;
      } else {
        const std::string name = unique("sym_size_int");
        parts_->integers[name] = size;
        part.operand = tagged("as_sym_int", tagged("as_name", name));
        OrderedJson given = OrderedJson::array();
        given.push_back(namedInput("self", operandOf(node.input(0)), true));
        given.push_back(namedInput("dim", tagged("as_int", d), true));
        OrderedJson made = OrderedJson::array();
        made.push_back(part.operand);
        addNode("torch.ops.aten.sym_size.int", std::move(given), std::move(made), name, node);
      }
      term.parts->push_back(std::move(part));
    }
    terms_[output] = std::move(term);
    return;
  }
  if (kind == Symbol::aten("size")) {
    inputs.push_back(namedInput("self", operandOf(node.input(0)), true));
    inputs.push_back(namedInput("dim", operandOf(node.input(1)), true));
    return finish("torch.ops.aten.sym_size.int", unique("sym_size_int"));
  }
  if (kind == Symbol::aten("numel")) {
    inputs.push_back(namedInput("self", operandOf(node.input(0)), true));
    return finish("torch.ops.aten.sym_numel.default", unique("sym_numel"));
  }
  const bool converts = kind == aten::Int || kind == aten::Float || kind == aten::Bool ||
                        kind == Symbol::aten("IntImplicit") ||
                        kind == Symbol::aten("FloatImplicit") ||
                        kind == Symbol::aten("ScalarImplicit") || kind == Symbol::aten("item");
  if (converts && node.input(0)->type()->kind() == TypeKind::Tensor) {
    if (followsFromSizes(node.input(0))) {
      terms_[output] = numberOf(node.input(0), &node);
      return;
    }
    inputs.push_back(namedInput("self", operandOf(node.input(0)), true));
    return finish("torch.ops.aten.item.default", unique("item"));
  }
  if (converts) {
    const bool same = node.input(0)->type()->equals(*output->type());
    if (same) {
      terms_[output] = termOf(node.input(0));
      return;
    }
    inputs.push_back(namedInput("a", operandOf(node.input(0)), true));
    return finish(kind == aten::Float ? "torch.sym_float" : "torch.sym_int", unique("number"));
  }
  const auto* found =
      std::ranges::find(kWrittenFunctions, kind.qualString(), &NumberFunction::name);
  if (found == std::end(kWrittenFunctions)) {
    fail(&node, fmt::format("{} of numbers that change has no form in exported programs",
                            kind.qualString()));
  }
  if (node.inputs().size() == 1 && node.input(0)->type()->kind() == TypeKind::List) {
    const Term list = termOf(node.input(0));
    const bool is_known =
        list.isContainer() && !list.parts->empty() &&
        std::ranges::all_of(*list.parts, [](const Term& part) { return part.number.has_value(); });
    if (is_known) {
      terms_[output] = writeExtreme(node, found->target, *list.parts);
      return;
    }
    if (!list.isContainer() || list.parts->size() != 2) {
      fail(&node, fmt::format("{} of other than two numbers", kind.qualString()));
    }
    for (size_t i = 0; i < 2; ++i) {
      inputs.push_back(namedInput(i == 0 ? "a" : "b", list.parts->at(i).operand, true));
    }
    return finish(found->target, unique(baseName(node)));
  }
  for (size_t i = 0; i < node.inputs().size(); ++i) {
    if (node.input(i)->type()->kind() == TypeKind::Tensor) {
      fail(&node, fmt::format("{} of a tensor gives a number", kind.qualString()));
    }
    inputs.push_back(namedInput(i == 0 ? "a" : "b", operandOf(node.input(i)), true));
  }
  // Ints of scripts wrap around, those of exported programs grow.
  const auto exact = numberByRule(node, knownArguments(node), fit_.arithmetic());
  if (exact && fit_.arithmetic().mayOverflow(*exact)) {
    fail(&node, "an int that may not fit in 64 bits has no form in exported programs");
  }
  finish(found->target, unique(baseName(node)));
}

// Lists are the same in all calls, so changes of them happen here.
bool ProgramWriter::writeListChange(const Node& node) {
  const Symbol kind = node.kind();
  if (node.inputs().empty() || node.input(0)->type()->kind() != TypeKind::List) return false;
  if (kind == Symbol::aten("add") && node.inputs().size() == 2 &&
      node.input(1)->type()->kind() == TypeKind::List) {
    Term joined;
    joined.makeContainer();
    for (const Value* input : node.inputs()) {
      const Term part = termOf(input);
      if (!part.isContainer()) fail(&node, "a list that an operator made is not supported here");
      joined.parts->insert(joined.parts->end(), part.parts->begin(), part.parts->end());
    }
    terms_[node.output()] = std::move(joined);
    return true;
  }
  const bool appends = kind == Symbol::aten("append"), extends = kind == Symbol::aten("extend");
  if (!appends && !extends && kind != Symbol::aten("_set_item") && kind != Symbol::aten("copy")) {
    return false;
  }
  if (parts_ != &outer_) fail(&node, "a list that changes in a branch or loop");
  const Term list = termOf(node.input(0));
  if (!list.isContainer()) fail(&node, "a list that an operator made is not supported here");
  Term result = list;
  if (appends) {
    list.parts->push_back(termOf(node.input(1)));
  } else if (extends) {
    const Term more = termOf(node.input(1));
    if (!more.isContainer()) fail(&node, "a list that an operator made is not supported here");
    const std::vector<Term> parts = *more.parts;
    list.parts->insert(list.parts->end(), parts.begin(), parts.end());
  } else if (kind == Symbol::aten("copy")) {
    result.parts = std::make_shared<std::vector<Term>>(*list.parts);
  } else {
    const IValue* index = fixed(node.input(1));
    const auto size = static_cast<int64_t>(list.parts->size());
    int64_t at = index && index->isInt() ? index->toInt() : size;
    if (at < 0) at += size;
    if (at < 0 || at >= size) fail(&node, "an element of a list at an index that is no constant");
    (*list.parts)[static_cast<size_t>(at)] = termOf(node.input(2));
  }
  if (!node.outputs().empty()) terms_[node.output()] = result;
  return true;
}

// A cast of autocast, which depends on the dtype that a tensor has, as a plain one or none.
bool ProgramWriter::writeAutocast(const Node& node) {
  if (node.kind() != Symbol::aten("_autocast_to_reduced_precision") &&
      node.kind() != Symbol::aten("_autocast_to_full_precision")) {
    return false;
  }
  const int64_t dtype = schemaDType(exampleOf(node.output()).dtype);
  if (dtype == schemaDType(exampleOf(node.input(0)).dtype)) {
    terms_[node.output()] = termOf(node.input(0));
    return true;
  }
  OrderedJson inputs = OrderedJson::array();
  inputs.push_back(namedInput("self", operandOf(node.input(0)), true));
  inputs.push_back(namedInput("dtype", tagged("as_scalar_type", dtype), true));
  const std::string name = unique("to");
  Term term = defineTensor(node.output(), name, sourceOf(node));
  addNode("torch.ops.aten.to.dtype", std::move(inputs), OrderedJson::array({term.operand}), name,
          node);
  terms_[node.output()] = std::move(term);
  return true;
}

void ProgramWriter::writeOperator(const Node& node) {
  const Operator& op = *node.maybeOperator();
  const FunctionSchema& schema = op.schema();
  const std::string_view space = node.kind().ns();
  if (space == "prim" || space == "wick" || schema.isVararg() || schema.isVarret()) {
    fail(&node, fmt::format("{} has no form in exported programs", node.kind().qualString()));
  }
  std::string target = fmt::format("torch.ops.{}.{}.{}", space, node.kind().name(),
                                   schema.overload().empty() ? "default" : schema.overload());
  bool all_by_name = false;
  for (const OtherOverload& other : kOtherOverloads) {
    if (other.name == node.kind().qualString() && other.overload == schema.overload()) {
      target = other.target;
      all_by_name = target.ends_with("dtype_layout");
    }
  }
  OrderedJson inputs = OrderedJson::array();
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const Argument& declared = schema.arguments()[i];
    const Value* value = node.input(i);
    const IValue* constant = fixed(value);
    if (declared.default_value && constant && declared.default_value->repr() == constant->repr()) {
      continue;
    }
    const bool by_position = !declared.kwarg_only && !(all_by_name && i > 0) && inputs.size() == i;
    inputs.push_back(namedInput(declared.name, argument(node, declared, value), by_position));
  }
  OrderedJson outputs = OrderedJson::array();
  const SizeSource from = sourceOf(node);
  // A node with one result shares its name; parts of several results have names of their own.
  const std::string name = unique(baseName(node));
  for (const Value* output : node.outputs()) {
    const std::string own = node.outputs().size() == 1 ? name : unique("getitem");
    Term term;
    const RecordedValue* example = runs_[0].find(output);
    if (output->type()->kind() == TypeKind::Tensor) {
      if (!example || !example->isTensor()) {
        outputs.push_back(tagged("as_none", true));
        continue;
      }
      term = defineTensor(output, own, from);
      outputs.push_back(term.operand);
    } else if (output->type()->kind() == TypeKind::List && example &&
               example->kind == RecordedValue::Kind::List) {
      // Each tensor of the list has a name of its own.
      term.makeContainer();
      OrderedJson names = OrderedJson::array();
      for (size_t i = 0; i < example->elements.size(); ++i) {
        TensorsInRuns in_runs;
        for (const RecordedRun& run : runs_) {
          const std::vector<RecordedValue>& elements = run.find(output)->elements;
          if (elements.size() != example->elements.size() || !elements[i].isTensor()) {
            fail(&node, "the number of tensors in a list depends on sizes");
          }
          in_runs.push_back(elements[i].tensor);
        }
        const std::string element = unique("getitem");
        Term part;
        parts_->tensors[element] = describeTensor(in_runs, output, from, part);
        part.operand = tagged("as_tensor", tagged("name", element));
        names.push_back(tagged("name", element));
        term.parts->push_back(std::move(part));
      }
      outputs.push_back(tagged("as_tensors", std::move(names)));
    } else {
      fail(&node, fmt::format("{} gives {}, which has no form in exported programs",
                              node.kind().qualString(), output->type()->annotation()));
    }
    terms_[output] = std::move(term);
  }
  addNode(target, std::move(inputs), std::move(outputs), name, node);
}

}  // namespace wick::exported
