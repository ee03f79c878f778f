#include "serialization/exported/program_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/source_origin.h"
#include "ir/operator.h"
#include "serialization/exported/read_schema.h"
#include "serialization/python_names.h"

namespace wick::exported {
namespace {

OrderedJson number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

int64_t schemaNumber(int64_t value, std::optional<int64_t> (*of)(int64_t)) {
  for (int64_t number = 1; number < 16; ++number) {
    if (of(number) == value) return number;
  }
  return 0;
}

// The same for tensors that are one, with a gradient or without.
std::string identityOf(const Tensor& tensor) {
  return fmt::format("{} {} {} {} {}", static_cast<const void*>(tensor.storage().get()),
                     tensor.offset(), static_cast<int>(tensor.dtype()), formatInts(tensor.sizes()),
                     formatInts(tensor.strides()));
}

}  // namespace

OrderedJson deviceJson(Device device) {
  const std::string text = device.str();
  const size_t colon = text.find(':');
  OrderedJson out;
  out["type"] = text.substr(0, colon);
  out["index"] = nullptr;
  if (colon != std::string::npos) out["index"] = std::stoi(text.substr(colon + 1));
  return out;
}

int64_t schemaDType(DType dtype) {
  for (int64_t number = 1; number < 64; ++number) {
    if (dtypeOf(number) == dtype) return number;
  }
  throwRuntimeError("export: tensors of {} have no form in exported programs", toString(dtype));
}

ProgramWriter::ProgramWriter(const Graph& graph, std::vector<RecordedRun> runs, const SizeFit& fit,
                             std::vector<NamedTensor> tensors)
    : source_(graph),
      runs_(std::move(runs)),
      fixed_(graph, runs_),
      fit_(fit),
      tensors_(std::move(tensors)) {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    tensor_index_.try_emplace(identityOf(tensors_[i].tensor), i);
  }
  parts_ = &outer_;
}

void ProgramWriter::fail(const Node* node, const std::string& message) const {
  const SourceRange range = userRange(node->range());
  throwRuntimeError("export: {}\n{}", message, range.highlight());
}

std::string ProgramWriter::unique(const std::string& candidate) {
  const std::string base = makeValidIdentifier(candidate);
  std::string name = base;
  while (!names_.insert(name).second) name = fmt::format("{}_{}", base, ++suffixes_[base]);
  return name;
}

// Marks the nodes that results and effects hang on, without those behind numbers that are written as constants.
void ProgramWriter::markNeeded(const Block& block) {
  std::vector<const Value*> open(block.outputs().begin(), block.outputs().end());
  std::vector<const Block*> blocks = {&block};
  while (!blocks.empty()) {
    const Block* inner = blocks.back();
    blocks.pop_back();
    for (const Node* node : inner->nodes()) {
      const Operator* op = node->maybeOperator();
      const bool acts = node->hasSideEffects() || (op && op->mayWrite(*node)) ||
                        node->kind() == prim::RaiseException;
      if (acts) {
        // With what it stands in.
        for (const Node* n = node; n != nullptr; n = n->block()->owningNode()) {
          if (!needed_.insert(n).second) break;
          open.insert(open.end(), n->inputs().begin(), n->inputs().end());
        }
      }
      const IValue* chosen = node->kind() == prim::If ? fixed(node->input(0)) : nullptr;
      for (size_t i = 0; i < node->blocks().size(); ++i) {
        if (!chosen || (i == 0) == chosen->toBool()) blocks.push_back(node->blocks()[i]);
      }
    }
  }
  while (!open.empty()) {
    const Value* value = open.back();
    open.pop_back();
    if (fixed(value)) continue;
    const Node* node = value->node();
    for (const Node* n = node; n != nullptr; n = n->block() ? n->block()->owningNode() : nullptr) {
      if (n->kind() == prim::Param || n->kind() == prim::Return || !needed_.insert(n).second) break;
      open.insert(open.end(), n->inputs().begin(), n->inputs().end());
      for (const Block* b : n->blocks()) {
        open.insert(open.end(), b->outputs().begin(), b->outputs().end());
      }
    }
    if (node->kind() == prim::Param && node->block()->owningNode()) {
      open.push_back(node->block()->owningNode()->outputs().empty()
                         ? node->block()->owningNode()->input(0)
                         : node->block()->owningNode()->output(0));
    }
  }
}

bool ProgramWriter::isNeeded(const Node& node) const {
  return needed_.contains(&node);
}

// ---- values ----

ProgramWriter::Term ProgramWriter::constantTerm(const IValue& value, const Value* at) {
  Term term;
  if (value.isTensor()) {
    term.operand = tensorInput(value.toTensor());
    term.sizes.emplace();
    for (const int64_t size : value.toTensor().sizes()) {
      term.sizes->push_back(SizeArithmetic::number(size));
    }
    for (const int64_t stride : value.toTensor().strides()) {
      term.strides.push_back(SizeArithmetic::number(stride));
    }
  } else if (value.isNone()) {
    term.operand = tagged("as_none", true);
  } else if (value.isBool()) {
    term.operand = tagged("as_bool", value.toBool());
  } else if (value.isInt()) {
    term.operand = tagged("as_int", value.toInt());
    term.number = SizeArithmetic::number(value.toInt());
  } else if (value.isDouble()) {
    term.operand = tagged("as_float", number(value.toDouble()));
  } else if (value.isString()) {
    term.operand = tagged("as_string", value.toString());
  } else if (value.isDevice()) {
    term.operand = tagged("as_device", deviceJson(value.toDevice()));
  } else if (value.isComplex()) {
    OrderedJson complex;
    complex["real"] = number(value.toComplex().real());
    complex["imag"] = number(value.toComplex().imag());
    term.operand = tagged("as_complex", std::move(complex));
  } else if (value.isList() || value.isTuple()) {
    term.makeContainer();
    for (const IValue& element : value.elements()) term.parts->push_back(constantTerm(element, at));
  } else {
    fail(at->node(),
         fmt::format("a constant of type {} has no form in exported programs", value.tagName()));
  }
  return term;
}

OrderedJson ProgramWriter::operandOf(const Value* value) {
  const Term term = termOf(value);
  if (term.isContainer()) fail(value->node(), "a list or dict stands where a single value belongs");
  return term.operand;
}

ProgramWriter::Term ProgramWriter::termOf(const Value* value) {
  const auto found = terms_.find(value);
  if (found != terms_.end()) return found->second;
  if (const IValue* constant = fixed(value)) return constantTerm(*constant, value);
  const Node* node = value->node();
  Term term;
  const Symbol kind = node->kind();
  if (kind == prim::Constant) {
    term = constantTerm(constantOf(value).value_or(IValue()), value);
  } else if (kind == prim::ListConstruct || kind == prim::TupleConstruct) {
    term.makeContainer();
    for (const Value* input : node->inputs()) term.parts->push_back(termOf(input));
  } else if (kind == prim::DictConstruct) {
    term.makeContainer();
    for (size_t i = 0; i + 1 < node->inputs().size(); i += 2) {
      const IValue* key = fixed(node->input(i));
      if (!key) fail(node, "a dict with a key that is no constant");
      term.keys.push_back(*key);
      term.parts->push_back(termOf(node->input(i + 1)));
    }
  } else if (kind == prim::ListUnpack || kind == prim::TupleUnpack) {
    const Term whole = termOf(node->input(0));
    if (!whole.isContainer()) fail(node, "a list that an operator made is not supported here");
    if (value->offset() >= whole.parts->size()) fail(node, "a list is shorter than its parts");
    term = (*whole.parts)[value->offset()];
  } else if (kind == prim::TupleIndex || kind == Symbol::aten("__getitem__")) {
    const IValue* index = fixed(node->input(1));
    const Term whole = termOf(node->input(0));
    if (!index || !whole.isContainer()) {
      fail(node, "an element of a list or dict at an index that is no constant");
    }
    if (node->input(0)->type()->kind() == TypeKind::Dict) {
      size_t found = 0;
      while (found < whole.keys.size() && whole.keys[found].repr() != index->repr()) ++found;
      if (found == whole.keys.size()) fail(node, "a dict has no such key");
      return terms_[value] = (*whole.parts)[found];
    }
    const auto size = static_cast<int64_t>(whole.parts->size());
    const int64_t at = index->toInt() < 0 ? index->toInt() + size : index->toInt();
    if (at < 0 || at >= size) fail(node, "an index is out of range");
    term = (*whole.parts)[static_cast<size_t>(at)];
  } else if (kind == prim::unchecked_cast || kind == Symbol::aten("_unwrap_optional")) {
    term = termOf(node->input(0));
  } else {
    fail(node, fmt::format("a value of {} is not known here", kind.qualString()));
  }
  terms_[value] = term;
  return term;
}

// The input of the graph that stands for a tensor of the module.
OrderedJson ProgramWriter::tensorInput(const Tensor& tensor) {
  const std::string identity = identityOf(tensor);
  auto found = tensor_index_.find(identity);
  if (found == tensor_index_.end()) {
    size_t number = 0;
    for (const NamedTensor& t : tensors_) number += t.is_constant ? 1 : 0;
    tensors_.push_back({fmt::format("lifted_tensor_{}", number), false, true, tensor});
    found = tensor_index_.emplace(identity, tensors_.size() - 1).first;
  }
  const size_t index = found->second;
  if (!used_.insert(index).second) return tensorOperand(input_names_.at(index));
  const NamedTensor& named = tensors_[index];
  const char* prefix = named.is_constant ? "c_" : named.is_parameter ? "p_" : "b_";
  const std::string name = unique(prefix + named.name);
  input_names_[index] = name;
  Term term;
  outer_.tensors[name] = describeTensor(
      TensorsInRuns(runs_.size(), std::make_shared<const RecordedTensor>(named.tensor)), nullptr,
      {}, term);
  return tensorOperand(name);
}

// ---- arguments of nodes ----

OrderedJson ProgramWriter::listArgument(const Node& node, const Type& element, const Value* value) {
  const Term term = termOf(value);
  if (!term.isContainer()) fail(&node, "a list that an operator made is not supported here");
  const Type* inner = &element;
  const bool optional = element.kind() == TypeKind::Optional;
  if (optional) inner = static_cast<const OptionalType&>(element).element().get();
  const auto all = [&](const char* kind, const auto& each) {
    OrderedJson list = OrderedJson::array();
    for (const Term& part : *term.parts) list.push_back(each(part.operand));
    return tagged(kind, std::move(list));
  };
  const auto isA = [&](const char* kind) {
    return std::ranges::all_of(*term.parts,
                               [&](const Term& t) { return t.operand.contains(kind); });
  };
  switch (inner->kind()) {
    case TypeKind::Tensor:
      if (optional) return all("as_optional_tensors", [](const OrderedJson& j) { return j; });
      return all("as_tensors", [](const OrderedJson& j) { return j.at("as_tensor"); });
    case TypeKind::Int:
      if (isA("as_int")) return all("as_ints", [](const OrderedJson& j) { return j.at("as_int"); });
      return all("as_sym_ints", [](const OrderedJson& j) {
        return j.contains("as_sym_int") ? j.at("as_sym_int") : j;
      });
    case TypeKind::Float:
      return all("as_floats", [](const OrderedJson& j) {
        return j.contains("as_float") ? j.at("as_float") : j.at("as_int");
      });
    case TypeKind::Bool:
      return all("as_bools", [](const OrderedJson& j) { return j.at("as_bool"); });
    case TypeKind::String:
      return all("as_strings", [](const OrderedJson& j) { return j.at("as_string"); });
    case TypeKind::Number:
      if (isA("as_int")) return all("as_ints", [](const OrderedJson& j) { return j.at("as_int"); });
      if (isA("as_float")) {
        return all("as_floats", [](const OrderedJson& j) { return j.at("as_float"); });
      }
      [[fallthrough]];
    default:
      fail(&node,
           fmt::format("lists of {} have no form in exported programs", element.annotation()));
  }
}

OrderedJson ProgramWriter::argument(const Node& node, const Argument& declared,
                                    const Value* value) {
  const Type* type = declared.type.get();
  if (type->kind() == TypeKind::Optional) {
    type = static_cast<const OptionalType*>(type)->element().get();
  }
  const IValue* constant = fixed(value);
  if (constant && constant->isNone()) return tagged("as_none", true);
  if (const auto* list = type->as<ListType>()) return listArgument(node, *list->element(), value);
  if (constant && constant->isInt()) {
    const std::string& name = declared.name;
    if (name == "dtype" || name == "out_dtype") {
      return tagged("as_scalar_type", schemaDType(static_cast<DType>(constant->toInt())));
    }
    if (name == "memory_format") {
      return tagged("as_memory_format", schemaNumber(constant->toInt(), memoryFormatOf));
    }
    if (name == "layout") return tagged("as_layout", schemaNumber(constant->toInt(), layoutOf));
    if (type->kind() == TypeKind::Float) {
      return tagged("as_float", number(static_cast<double>(constant->toInt())));
    }
  }
  const Term term = termOf(value);
  if (term.isContainer()) fail(&node, "a list stands for a single value");
  return term.operand;
}

void ProgramWriter::addNode(const std::string& target, OrderedJson inputs, OrderedJson outputs,
                            const std::string& name, const Node& at) {
  OrderedJson node;
  node["target"] = target;
  node["inputs"] = std::move(inputs);
  node["outputs"] = std::move(outputs);
  OrderedJson metadata = OrderedJson::object();
  const SourceRange range = userRange(at.range());
  if (range.valid()) {
    metadata["stack_trace"] =
        fmt::format("File \"{}\", line {}, in forward\n    {}", range.source()->name(),
                    range.source()->lineNumber(range.start()),
                    range.source()->text().substr(range.source()->lineStart(range.start()),
                                                  range.source()->lineEnd(range.start()) -
                                                      range.source()->lineStart(range.start())));
  }
  node["metadata"] = std::move(metadata);
  node["is_hop_single_tensor_return"] = nullptr;
  node["name"] = name;
  parts_->nodes.push_back(std::move(node));
}

}  // namespace wick::exported
