// If and Loop as cond and while_loop, and the graph as a whole.
#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "ir/operator.h"
#include "serialization/exported/program_writer.h"

namespace wick::exported {
namespace {

OrderedJson positional(OrderedJson operand) {
  return namedInput("", std::move(operand), true);
}

OrderedJson namesOf(const std::vector<OrderedJson>& tensors) {
  OrderedJson out = OrderedJson::array();
  for (const OrderedJson& tensor : tensors) out.push_back(tensor.at("as_tensor"));
  return tagged("as_tensors", std::move(out));
}

OrderedJson graphJson(OrderedJson inputs, OrderedJson outputs, GraphParts& parts) {
  OrderedJson out;
  out["inputs"] = std::move(inputs);
  out["outputs"] = std::move(outputs);
  out["nodes"] = std::move(parts.nodes);
  out["tensor_values"] = std::move(parts.tensors);
  out["sym_int_values"] = std::move(parts.integers);
  out["sym_bool_values"] = std::move(parts.booleans);
  out["is_single_tensor_return"] = false;
  out["custom_obj_values"] = OrderedJson::object();
  out["sym_float_values"] = std::move(parts.floats);
  return out;
}

bool isWithin(const Block* block, const Node& node) {
  for (; block; block = block->owningBlock()) {
    if (std::ranges::find(node.blocks(), block) != node.blocks().end()) return true;
  }
  return false;
}

}  // namespace

// Values of tensors from outside that the node's blocks read, in the order of their first use; parameters too.
std::vector<const Value*> ProgramWriter::freeTensors(const Node& node) {
  std::vector<const Value*> found;
  const auto note = [&](const Value* value) {
    if (value->type()->kind() != TypeKind::Tensor || std::ranges::find(found, value) != found.end())
      return;
    const bool is_constant = value->node()->kind() == prim::Constant;
    if (is_constant ? fixed(value) != nullptr : isWithin(value->node()->block(), node)) return;
    found.push_back(value);
  };
  std::vector<const Block*> blocks(node.blocks().begin(), node.blocks().end());
  for (size_t i = 0; i < blocks.size(); ++i) {
    for (const Node* inner : blocks[i]->nodes()) {
      if (!isNeeded(*inner)) continue;
      for (const Value* input : inner->inputs()) note(input);
      blocks.insert(blocks.end(), inner->blocks().begin(), inner->blocks().end());
    }
    for (const Value* output : blocks[i]->outputs()) note(output);
  }
  return found;
}

// A block as a graph whose inputs stand for `inputs`, which are tensors.
OrderedJson ProgramWriter::part(const std::string& name, const std::vector<const Value*>& inputs,
                                const Block& block, const std::vector<const Value*>& outputs,
                                std::vector<Term>& results) {
  GraphParts own;
  GraphParts* before = std::exchange(parts_, &own);
  const auto terms = terms_;
  OrderedJson given = OrderedJson::array();
  for (const Value* value : inputs) {
    SizeSource from;
    if (const auto known = terms.find(value); known != terms.end()) from.add(known->second);
    Term term = defineTensor(value, unique("arg"), from);
    given.push_back(term.operand);
    terms_[value] = std::move(term);
  }
  writeBlock(block);
  OrderedJson made = OrderedJson::array();
  for (const Value* value : outputs) {
    const Term term = termOf(value);
    if (term.isContainer() || !term.operand.contains("as_tensor")) {
      fail(block.owningNode(), "a branch or loop with values other than tensors");
    }
    made.push_back(term.operand);
    results.push_back(term);
  }
  terms_ = terms;
  parts_ = before;
  OrderedJson out;
  out["name"] = name;
  out["graph"] = graphJson(std::move(given), std::move(made), own);
  return tagged("as_graph", std::move(out));
}

// Throws at the first node within the branches that changes something.
void ProgramWriter::failAtEffect(const Node& node) const {
  for (const Block* block : node.blocks()) {
    for (const Node* inner : block->nodes()) {
      const Operator* op = inner->maybeOperator();
      if (!inner->hasSideEffects() && !(op && op->mayWrite(*inner))) continue;
      const TypeKind type =
          inner->inputs().empty() ? TypeKind::None : inner->input(0)->type()->kind();
      if (type == TypeKind::List || type == TypeKind::Dict) {
        fail(inner,
             fmt::format("a {} that changes in a branch or loop ({})",
                         type == TypeKind::List ? "list" : "dict", inner->kind().qualString()));
      }
      fail(inner, fmt::format("{} in a branch without results has no form in exported programs",
                              inner->kind().qualString()));
    }
  }
  fail(&node, "a branch with effects");
}

// An If one of whose sides does nothing but raise.
void ProgramWriter::writeAssertion(const Node& node, const Value* condition) {
  const auto raise = [](const Block& block) -> const Node* {
    const Node* found = nullptr;
    for (const Node* n : block.nodes()) {
      if (n->kind() == prim::RaiseException) found = n;
    }
    return found;
  };
  const Node* if_true = raise(*node.blocks()[0]);
  const Node* if_false = raise(*node.blocks()[1]);
  if ((if_true != nullptr) == (if_false != nullptr)) failAtEffect(node);
  const auto named = [](const char* name, OrderedJson operand) {
    OrderedJson out = positional(std::move(operand));
    out["name"] = name;
    return out;
  };
  OrderedJson holds = operandOf(condition);
  if (if_true) {
    const std::string name = unique("logical_not");
    OrderedJson inputs = OrderedJson::array({named("self", holds)});
    parts_->tensors[name] =
        parts_->tensors.contains(holds.at("as_tensor").at("name").get<std::string>())
            ? parts_->tensors[holds.at("as_tensor").at("name").get<std::string>()]
            : outer_.tensors[holds.at("as_tensor").at("name").get<std::string>()];
    holds = tagged("as_tensor", tagged("name", name));
    addNode("torch.ops.aten.logical_not.default", std::move(inputs), OrderedJson::array({holds}),
            name, node);
  }
  const std::optional<IValue> message = constantOf((if_true ? if_true : if_false)->input(0));
  OrderedJson inputs = OrderedJson::array(
      {named("self", holds),
       named("assert_msg", tagged("as_string", message && message->isString()
                                                   ? message->toString()
                                                   : "an assertion of the program fails"))});
  addNode("torch.ops.aten._assert_async.msg", std::move(inputs), OrderedJson::array(),
          unique("_assert_async"), node);
}

void ProgramWriter::writeIf(const Node& node) {
  if (const IValue* chosen = fixed(node.input(0))) {
    const Block& block = *node.blocks()[chosen->toBool() ? 0 : 1];
    writeBlock(block);
    for (size_t i = 0; i < node.outputs().size(); ++i) {
      if (!fixed(node.output(i))) terms_[node.output(i)] = termOf(block.outputs()[i]);
    }
    return;
  }
  const std::vector<const Value*> given = freeTensors(node);
  std::vector<OrderedJson> operands;
  for (const Value* value : given) operands.push_back(operandOf(value));
  // A boolean of a tensor is the tensor itself.
  const Node* condition = node.input(0)->node();
  const bool of_tensor = condition->kind() == aten::Bool &&
                         condition->input(0)->type()->kind() == TypeKind::Tensor &&
                         exampleOf(condition->input(0)).dtype == DType::Bool;
  if (of_tensor && node.outputs().empty()) return writeAssertion(node, condition->input(0));
  OrderedJson inputs = OrderedJson::array();
  inputs.push_back(positional(operandOf(of_tensor ? condition->input(0) : node.input(0))));
  std::vector<Term> made;  // by both sides
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const Block& block = *node.blocks()[i];
    const std::vector<const Value*> outputs(block.outputs().begin(), block.outputs().end());
    inputs.push_back(positional(
        part(unique(i == 0 ? "true_graph" : "false_graph"), given, block, outputs, made)));
  }
  inputs.push_back(positional(namesOf(operands)));
  OrderedJson outputs = OrderedJson::array();
  for (size_t i = 0; i < node.outputs().size(); ++i) {
    SizeSource from;
    from.add(made[i]);
    from.add(made[i + node.outputs().size()]);
    Term term = defineTensor(node.output(i), unique("getitem"), from);
    outputs.push_back(term.operand);
    terms_[node.output(i)] = std::move(term);
  }
  addNode("torch.ops.higher_order.cond", std::move(inputs), std::move(outputs), unique("cond"),
          node);
  parts_->nodes.back()["is_hop_single_tensor_return"] = false;
}

// A loop that a condition on tensors ends: the condition is one more tensor that the loop carries.
void ProgramWriter::writeLoop(const Node& node) {
  const Block& body = *node.blocks()[0];
  const IValue* most = fixed(node.input(0));
  constexpr int64_t kEndless = int64_t{1} << 31;
  if (!most || most->toInt() < kEndless || body.inputs()[0]->hasUses()) {
    const std::string count = most && most->toInt() < kEndless
                                  ? fmt::format("a loop of {} iterations", most->toInt())
                                  : "a loop that counts as far as tensors or open sizes say";
    fail(&node, count + " has no form in exported programs: up to 1024 iterations are unrolled");
  }
  const auto tensorOf = [&](const Value* condition) {
    const Node* made = condition->node();
    const bool of_tensor = made->kind() == aten::Bool && made->inputs().size() == 1 &&
                           made->input(0)->type()->kind() == TypeKind::Tensor;
    if (!of_tensor) fail(&node, "a loop whose condition is no tensor");
    return static_cast<const Value*>(made->input(0));
  };
  const Value* first = tensorOf(node.input(1));
  const Value* next = tensorOf(body.outputs()[0]);
  std::vector<const Value*> given = freeTensors(node);
  std::vector<const Value*> outputs = {next};
  std::vector<const Value*> carried = {first};
  std::vector<const Value*> inside;
  for (size_t i = 2; i < node.inputs().size(); ++i) {
    carried.push_back(node.input(i));
    inside.push_back(body.inputs()[i - 1]);
    // The sizes are those that the loop begins with.
    if (const std::optional<Term> begin = knownTerm(node.input(i))) terms_[inside.back()] = *begin;
    outputs.push_back(body.outputs()[i - 1]);
  }
  std::vector<OrderedJson> operands;
  for (const Value* value : carried) operands.push_back(operandOf(value));
  std::vector<OrderedJson> others;
  for (const Value* value : given) others.push_back(operandOf(value));
  // The condition's graph gives back the first tensor.
  GraphParts own;
  GraphParts* before = std::exchange(parts_, &own);
  OrderedJson condition_inputs = OrderedJson::array();
  const auto ofValue = [&](const Value* value) {
    SizeSource from;
    if (const std::optional<Term> term = knownTerm(value)) from.add(*term);
    return from;
  };
  OrderedJson condition_outputs = OrderedJson::array();
  for (const auto* values : {&carried, &given}) {
    for (const Value* value : *values)
      condition_inputs.push_back(defineTensor(value, unique("arg"), ofValue(value)).operand);
  }
  const std::string condition_name = unique("clone");
  condition_outputs.push_back(defineTensor(first, condition_name, ofValue(first)).operand);
  OrderedJson self = positional(condition_inputs[0]);
  self["name"] = "self";
  OrderedJson clone_inputs = OrderedJson::array();
  clone_inputs.push_back(std::move(self));
  addNode("torch.ops.aten.clone.default", std::move(clone_inputs), condition_outputs,
          condition_name, node);
  parts_ = before;
  OrderedJson condition;
  condition["name"] = unique("while_loop_cond_graph");
  condition["graph"] = graphJson(std::move(condition_inputs), std::move(condition_outputs), own);
  condition["graph"]["is_single_tensor_return"] = true;

  std::vector<const Value*> all = {first};
  all.insert(all.end(), inside.begin(), inside.end());
  all.insert(all.end(), given.begin(), given.end());
  OrderedJson inputs = OrderedJson::array();
  std::vector<Term> made;
  inputs.push_back(positional(tagged("as_graph", std::move(condition))));
  inputs.push_back(positional(part(unique("while_loop_body_graph"), all, body, outputs, made)));
  inputs.push_back(positional(namesOf(operands)));
  inputs.push_back(positional(namesOf(others)));
  OrderedJson results = OrderedJson::array();
  results.push_back(defineTensor(first, unique("getitem"), ofValue(first)).operand);
  for (size_t i = 0; i < node.outputs().size(); ++i) {
    SizeSource from;
    from.add(made[i + 1]);
    Term term = defineTensor(node.output(i), unique("getitem"), from);
    results.push_back(term.operand);
    terms_[node.output(i)] = std::move(term);
  }
  addNode("torch.ops.higher_order.while_loop", std::move(inputs), std::move(results),
          unique("while_loop"), node);
  parts_->nodes.back()["is_hop_single_tensor_return"] = false;
}

// ---- the whole ----

namespace {

std::string keysOf(const RecordedValue& dict) {
  OrderedJson keys = OrderedJson::array();
  for (const IValue& key : dict.keys) {
    if (key.isString()) {
      keys.push_back(key.toString());
    } else if (key.isInt()) {
      keys.push_back(key.toInt());
    } else {
      throwRuntimeError("export: a dict whose keys are neither strings nor integers");
    }
  }
  return keys.dump();
}

// The tree of a list, tuple or dict.
OrderedJson nodeTree(const RecordedValue& value, OrderedJson children) {
  if (value.kind == RecordedValue::Kind::Dict) {
    return containerTree("builtins.dict", keysOf(value), std::move(children));
  }
  const bool is_list = value.kind == RecordedValue::Kind::List;
  return containerTree(is_list ? "builtins.list" : "builtins.tuple", "null", std::move(children));
}

}  // namespace

void ProgramWriter::addArgument(const ValuesInRuns& in_runs, const std::string& name, Term& term,
                                OrderedJson& tree) {
  const RecordedValue& value = *in_runs[0];
  if (value.isTensor()) {
    TensorsInRuns tensors;
    for (const RecordedValue* v : in_runs) tensors.push_back(v->tensor);
    const std::string own = unique(name);
    outer_.tensors[own] = describeTensor(tensors, nullptr, {}, term);
    term.operand = tagged("as_tensor", tagged("name", own));
    graph_inputs_.push_back(term.operand);
    input_specs.push_back(tagged("user_input", tagged("arg", term.operand)));
    tree = leafTree();
    return;
  }
  if (value.isContainer()) {
    const bool is_dict = value.kind == RecordedValue::Kind::Dict;
    term.makeContainer();
    term.keys = value.keys;
    OrderedJson children = OrderedJson::array();
    for (size_t i = 0; i < value.elements.size(); ++i) {
      ValuesInRuns parts;
      for (const RecordedValue* v : in_runs) {
        parts.push_back(is_dict ? v->at(value.keys[i]) : &v->elements.at(i));
      }
      const std::string part_name = !is_dict                   ? fmt::format("{}", i)
                                    : value.keys[i].isString() ? value.keys[i].toString()
                                                               : value.keys[i].repr();
      Term part;
      OrderedJson child;
      addArgument(parts, fmt::format("{}_{}", name, part_name), part, child);
      term.parts->push_back(std::move(part));
      children.push_back(std::move(child));
    }
    tree = nodeTree(value, std::move(children));
    return;
  }
  // A constant, which is what the program was made with.
  term = constantTerm(value.plain, source_.inputs()[0]);
  OrderedJson spec;
  spec["name"] = unique(name);
  spec["value"] = term.operand;
  graph_inputs_.push_back(term.operand);
  input_specs.push_back(tagged("constant_input", std::move(spec)));
  tree = leafTree();
}

OrderedJson ProgramWriter::treeOf(const Value* value, const RecordedValue& example) {
  const Term term = termOf(value);
  const auto add = [&](const auto& self, const Term& part, const RecordedValue& of) -> OrderedJson {
    if (!part.isContainer()) {
      output_specs.push_back(tagged("user_output", tagged("arg", part.operand)));
      return leafTree();
    }
    OrderedJson children = OrderedJson::array();
    for (size_t i = 0; i < part.parts->size(); ++i) {
      children.push_back(self(self, (*part.parts)[i], of.elements.at(i)));
    }
    return nodeTree(of, std::move(children));
  };
  return add(add, term, example);
}

void ProgramWriter::write(const std::vector<std::string>& argument_names, size_t num_given) {
  markNeeded(*source_.block());
  OrderedJson by_position = OrderedJson::array();
  for (size_t i = 0; i < source_.inputs().size(); ++i) {
    const Value* value = source_.inputs()[i];
    ValuesInRuns in_runs;
    for (const RecordedRun& run : runs_) in_runs.push_back(run.find(value));
    // Arguments that nobody gave are constants that the program does not mention.
    if (i >= num_given) {
      terms_[value] = constantTerm(in_runs[0]->plain, value);
      continue;
    }
    Term term;
    OrderedJson child;
    addArgument(in_runs, argument_names.at(i), term, child);
    terms_[value] = std::move(term);
    by_position.push_back(std::move(child));
    given_names.push_back(argument_names.at(i));
  }
  writeBlock(*source_.block());
  const Value* result = source_.outputs().at(0);
  const OrderedJson results = treeOf(result, runs_[0].result());
  OrderedJson both = OrderedJson::array();
  both.push_back(containerTree("builtins.tuple", "null", std::move(by_position)));
  both.push_back(containerTree("builtins.dict", "[]", OrderedJson::array()));
  argument_tree =
      OrderedJson::array({1, containerTree("builtins.tuple", "null", std::move(both))}).dump();
  result_tree = OrderedJson::array({1, results}).dump();

  // Parameters, buffers and constants come first.
  OrderedJson inputs = OrderedJson::array();
  OrderedJson specs = OrderedJson::array();
  struct Group {
    bool is_parameter, is_constant;
    const char* kind;
    const char* target;
  };
  constexpr Group kGroups[] = {{true, false, "parameter", "parameter_name"},
                               {false, false, "buffer", "buffer_name"},
                               {false, true, "tensor_constant", "tensor_constant_name"}};
  for (const Group& group : kGroups) {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const NamedTensor& t = tensors_[i];
      if (!used_.contains(i) || t.is_parameter != group.is_parameter ||
          t.is_constant != group.is_constant)
        continue;
      inputs.push_back(tagged("as_tensor", tagged("name", input_names_.at(i))));
      OrderedJson spec;
      spec["arg"] = tagged("name", input_names_.at(i));
      spec[group.target] = t.name;
      if (!group.is_parameter && !group.is_constant) spec["persistent"] = true;
      specs.push_back(tagged(group.kind, std::move(spec)));
    }
  }
  for (OrderedJson& input : graph_inputs_) inputs.push_back(std::move(input));
  for (OrderedJson& spec : input_specs) specs.push_back(std::move(spec));
  input_specs = std::move(specs);
  OrderedJson outputs = OrderedJson::array();
  for (const OrderedJson& spec : output_specs) outputs.push_back(spec.at("user_output").at("arg"));
  graph = graphJson(std::move(inputs), std::move(outputs), outer_);
}

}  // namespace wick::exported
