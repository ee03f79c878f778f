// Higher-order operators: graphs as arguments become blocks of If and Loop, or stand in place.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "core/error.h"
#include "frontend/builtin_functions.h"
#include "frontend/schema_matching.h"
#include "ir/operator.h"
#include "serialization/exported/graph_builder.h"

namespace wick::exported {

// One call of a higher-order operator.
class HigherOrder {
 public:
  HigherOrder(GraphBuilder& builder, const NodeRecord& node)
      : builder_(builder), graph_(builder.graph_), node_(node) {}

  // The function that emits calls of an operator; null for one that is not known.
  using Emit = void (HigherOrder::*)();
  static Emit find(std::string_view name) {
    struct Row {
      std::string_view name;
      Emit emit;
    };
    static constexpr Row kRows[] = {
        {"cond", &HigherOrder::condition},
        {"while_loop", &HigherOrder::whileLoop},
        {"map_impl", &HigherOrder::map},
        {"scan", &HigherOrder::scan},
        {"associative_scan", &HigherOrder::associativeScan},
        {"wrap_with_set_grad_enabled", &HigherOrder::gradientMode},
        {"wrap_with_autocast", &HigherOrder::autocast},
        {"auto_functionalized", &HigherOrder::functionalized},
        {"auto_functionalized_v2", &HigherOrder::functionalizedViews},
        {"with_effects", &HigherOrder::withEffects},
        {"strict_mode", &HigherOrder::inPlace},
        {"tag_activation_checkpoint", &HigherOrder::inPlace},
        {"wrap_activation_checkpoint", &HigherOrder::inPlace},
        {"wrap", &HigherOrder::inPlace},
        {"run_const_graph", &HigherOrder::inPlace},
        {"hints_wrapper", &HigherOrder::inPlace},
        {"invoke_subgraph", &HigherOrder::inPlace},
        {"out_dtype", &HigherOrder::outDType},
    };
    const auto* found = std::ranges::find(kRows, name, &Row::name);
    return found == std::end(kRows) ? nullptr : found->emit;
  }

  void emit(std::string_view name) {
    if (const Emit emit = find(name)) return (this->*emit)();
    if (name == "call_torchbind") {
      fail(
          "higher_order::call_torchbind calls a method of an object of C++, which Wick does not "
          "have");
    }
    fail(fmt::format("Unknown builtin op: higher_order::{}; the program calls {}", name,
                     node_.target));
  }

 private:
  [[noreturn]] void fail(const std::string& message) const { builder_.fail(message); }

  const Operand& argument(size_t i, OperandKind kind) const {
    if (i >= node_.inputs.size() || node_.inputs[i].operand.kind != kind) {
      fail(fmt::format("argument {} lacks or is of another kind", i));
    }
    return node_.inputs[i].operand;
  }
  Value* value(size_t i) {
    if (i >= node_.inputs.size()) fail(fmt::format("argument {} lacks", i));
    return builder_.valueOf(node_.inputs[i].operand);
  }
  const GraphRecord& part(size_t i) const { return *argument(i, OperandKind::Graph).graph; }

  // The elements of a list.
  std::vector<Value*> values(size_t i) {
    std::vector<Value*> out;
    for (const Operand& element : argument(i, OperandKind::List).elements) {
      out.push_back(builder_.valueOf(element));
    }
    return out;
  }

  // Inserts the nodes of a part, whose names are its own, and returns its outputs.
  std::vector<Value*> run(const GraphRecord& part, const std::vector<Value*>& arguments) {
    if (part.inputs.size() != arguments.size()) {
      fail(fmt::format("the graph '{}' takes {} values and gets {}", part.name, part.inputs.size(),
                       arguments.size()));
    }
    auto outer = std::exchange(builder_.values_, {});
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (part.inputs[i].isName()) builder_.bind(part.inputs[i].text, arguments[i]);
    }
    builder_.emit(part);
    std::vector<Value*> outputs;
    for (const Operand& output : part.outputs) outputs.push_back(builder_.valueOf(output));
    builder_.values_ = std::move(outer);
    return outputs;
  }

  Value* builtin(const char* name, const std::vector<Value*>& arguments) {
    return emitBuiltin(graph_.currentRange(), graph_, Symbol::fromQualString(name), arguments);
  }
  Value* integer(int64_t value) { return graph_.insertConstant(IValue(value)); }
  Value* asBool(Value* value) { return builder_.asKind(OperandKind::SymBool, value); }

  static std::vector<Value*> joined(std::vector<Value*> first, const std::vector<Value*>& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
  }

  void condition() {
    Value* chooses = asBool(value(0));
    const std::vector<Value*> arguments = values(3);
    Node* choice = graph_.insertNode(graph_.create(prim::If, {chooses}, 0));
    std::vector<Value*> outputs;
    for (const size_t i : {size_t{1}, size_t{2}}) {
      Block* block = choice->addBlock();
      const InsertPointGuard inside(block);
      const std::vector<Value*> made = run(part(i), arguments);
      if (i == 2 && made.size() != outputs.size()) {
        fail("the two graphs of a condition give different numbers of results");
      }
      for (size_t k = 0; k < made.size(); ++k) {
        if (i == 2 && !made[k]->type()->equals(*outputs[k]->type())) {
          fail(fmt::format("the two graphs of a condition give {} and {}",
                           outputs[k]->type()->annotation(), made[k]->type()->annotation()));
        }
        block->registerOutput(made[k]);
      }
      outputs = made;
    }
    for (const Value* output : outputs) choice->addOutput(output->type());
    builder_.bindOutputs(node_, choice->outputs());
  }

  // A loop with values that it carries on. `body` gets the number of the iteration and these, and returns the next condition
  // and the next values; without a condition of its own it returns a constant.
  template <class Body>
  std::vector<Value*> loop(Value* most, Value* begins, const std::vector<Value*>& carried,
                           const Body& body) {
    Node* loop = graph_.insertNode(graph_.create(prim::Loop, {most, begins}, 0));
    Block* block = loop->addBlock();
    Value* index = block->addInput(types::Int(), "i");
    std::vector<Value*> values;
    for (Value* value : carried) {
      loop->addInput(value);
      values.push_back(block->addInput(value->type()));
      loop->addOutput(value->type());
    }
    const InsertPointGuard inside(block);
    const auto [next, outputs] = body(index, values);
    if (outputs.size() != carried.size()) {
      fail("the graph of a loop gives another number of values than it takes");
    }
    block->registerOutput(next);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i]->type()->isSubtypeOf(*carried[i]->type())) {
        fail(fmt::format("a loop carries {} and its graph gives {}",
                         carried[i]->type()->annotation(), outputs[i]->type()->annotation()));
      }
      block->registerOutput(outputs[i]);
    }
    return loop->outputs();
  }

  void whileLoop() {
    const std::vector<Value*> carried = values(2);
    const std::vector<Value*> others = node_.inputs.size() > 3 ? values(3) : std::vector<Value*>();
    const auto goesOn = [&](const std::vector<Value*>& now) {
      const std::vector<Value*> out = run(part(0), joined(now, others));
      if (out.size() != 1) fail("the condition of a loop gives several values");
      return asBool(out[0]);
    };
    builder_.bindOutputs(node_, loop(integer(std::numeric_limits<int64_t>::max()), goesOn(carried),
                                     carried, [&](Value*, const std::vector<Value*>& now) {
                                       std::vector<Value*> next = run(part(1), joined(now, others));
                                       Value* condition = goesOn(next);
                                       return std::pair(condition, std::move(next));
                                     }));
  }

  Value* emptyList() { return graph_.insertNode(graph_.createList(types::Tensor(), {}))->output(); }
  Value* length(const std::vector<Value*>& xs) {
    if (xs.empty()) fail("a loop over no tensors");
    return builtin("aten::size", {xs[0], integer(0)});
  }
  std::vector<Value*> selected(const std::vector<Value*>& xs, Value* index) {
    std::vector<Value*> out;
    for (Value* x : xs) out.push_back(builtin("aten::select", {x, integer(0), index}));
    return out;
  }
  void append(const std::vector<Value*>& lists, std::span<Value* const> tensors) {
    for (size_t i = 0; i < lists.size(); ++i) builtin("aten::append", {lists[i], tensors[i]});
  }
  std::vector<Value*> stacked(const std::vector<Value*>& lists) {
    std::vector<Value*> out;
    for (Value* list : lists) out.push_back(builtin("aten::stack", {list, integer(0)}));
    return out;
  }
  Value* always() { return graph_.insertConstant(IValue(true)); }

  void map() {
    const std::vector<Value*> xs = values(1);
    const std::vector<Value*> others = values(2);
    std::vector<Value*> lists;
    for (size_t i = 0; i < part(0).outputs.size(); ++i) lists.push_back(emptyList());
    loop(length(xs), always(), {}, [&](Value* index, const std::vector<Value*>&) {
      append(lists, run(part(0), joined(selected(xs, index), others)));
      return std::pair(always(), std::vector<Value*>());
    });
    builder_.bindOutputs(node_, stacked(lists));
  }

  void scan() {
    const std::vector<Value*> first = values(1);
    const std::vector<Value*> xs = values(2);
    const std::vector<Value*> others = node_.inputs.size() > 3 ? values(3) : std::vector<Value*>();
    if (part(0).outputs.size() < first.size()) fail("the graph of a scan gives too few values");
    std::vector<Value*> lists;
    for (size_t i = first.size(); i < part(0).outputs.size(); ++i) lists.push_back(emptyList());
    const std::vector<Value*> last =
        loop(length(xs), always(), first, [&](Value* index, const std::vector<Value*>& now) {
          std::vector<Value*> made = run(part(0), joined(joined(now, selected(xs, index)), others));
          append(lists, std::span(made).subspan(first.size()));
          made.resize(first.size());
          return std::pair(always(), std::move(made));
        });
    builder_.bindOutputs(node_, joined(last, stacked(lists)));
  }

  // One after the other, which rounds in another order than PyTorch's tree.
  void associativeScan() {
    const std::vector<Value*> xs = values(1);
    const std::vector<Value*> others = node_.inputs.size() > 2 ? values(2) : std::vector<Value*>();
    std::vector<Value*> lists;
    for (size_t i = 0; i < xs.size(); ++i) lists.push_back(emptyList());
    const std::vector<Value*> first = selected(xs, integer(0));
    append(lists, first);
    Value* rest = builtin("aten::sub", {length(xs), integer(1)});
    loop(rest, always(), first, [&](Value* index, const std::vector<Value*>& now) {
      Value* next = builtin("aten::add", {index, integer(1)});
      std::vector<Value*> made = run(part(0), joined(joined(now, selected(xs, next)), others));
      if (made.size() != lists.size()) fail("the graph of a scan gives another number of values");
      append(lists, made);
      return std::pair(always(), std::move(made));
    });
    builder_.bindOutputs(node_, stacked(lists));
  }

  // The first graph among the arguments and the values behind it, in a list or one by one.
  std::vector<Value*> runFirstPart() {
    size_t at = 0;
    while (at < node_.inputs.size() && node_.inputs[at].operand.kind != OperandKind::Graph) ++at;
    if (at == node_.inputs.size()) fail("the operator has no graph");
    std::vector<Value*> arguments;
    for (size_t i = at + 1; i < node_.inputs.size(); ++i) {
      const Operand& operand = node_.inputs[i].operand;
      // Names of graphs, hints and options that are given by name.
      if (!node_.inputs[i].by_position || operand.kind == OperandKind::String ||
          operand.kind == OperandKind::Dict) {
        continue;
      }
      if (operand.kind == OperandKind::List) {
        arguments = joined(std::move(arguments), values(i));
      } else {
        arguments.push_back(builder_.valueOf(operand));
      }
    }
    return run(part(at), arguments);
  }

  void inPlace() { builder_.bindOutputs(node_, runFirstPart()); }

  // Runs the part within `with CLASS(...)`.
  void within(const std::string& class_name, const std::vector<Value*>& arguments) {
    const TypePtr type = builtinScriptType(class_name);
    const auto* known = type ? type->as<ClassType>() : nullptr;
    WICK_ASSERT(known, "there is no class {}", class_name);
    Function* made = known->findMethod("__init__");
    defineBuiltinFunction(static_cast<GraphFunction&>(*made));
    Value* scope = graph_.insertNode(graph_.createObject(known->shared()))->output();
    graph_.insertMethodCall(scope, made, arguments);
    Function* enter = known->findMethod("__enter__");
    defineBuiltinFunction(static_cast<GraphFunction&>(*enter));
    Node* entered = graph_.insertNode(graph_.create(prim::Enter, {scope}));
    entered->output()->setType(enter->schema().returns().at(0).type);
    const std::vector<Value*> outputs = runFirstPart();
    graph_.insertNode(graph_.create(prim::Exit, {scope}, 0));
    builder_.bindOutputs(node_, outputs);
  }

  void gradientMode() {
    const bool on = argument(0, OperandKind::Bool).integer != 0;
    within(fmt::format("torch.autograd.grad_mode.{}", on ? "enable_grad" : "no_grad"), {});
  }

  void autocast() {
    Value* device = builder_.valueOf(argument(0, OperandKind::String));
    Value* dtype = value(1);
    Value* enabled = builder_.valueOf(argument(2, OperandKind::Bool));
    within("torch.amp.autocast_mode.autocast",
           {device, dtype, enabled, graph_.insertNode(graph_.createNone())->output()});
  }

  struct Target {
    const Operator* op;
    Symbol name;
    std::string overload;
  };
  Target targetNamed(const std::string& text) const {
    const std::optional<OperatorName> named = operatorNamed(text);
    if (!named) fail(fmt::format("'{}' is no name of an operator", text));
    Target out{nullptr, named->symbol, named->overload};
    out.op = OperatorRegistry::instance().find(out.name, out.overload);
    if (!out.op) {
      fail(fmt::format("Unknown builtin op: {}; the program calls {}", out.name.qualString(),
                       node_.target));
    }
    return out;
  }

  // Calls an operator with values by name. Results of the operator come first, then those of `written`.
  void callWith(const Target& target, const KeyedMap<std::string, Value*>& given,
                const std::vector<Value*>& written) {
    const SourceRange& range = graph_.currentRange();
    std::vector<NamedValue> arguments;
    for (const Argument& argument : target.op->schema().arguments()) {
      const auto found = given.find(argument.name);
      if (found != given.end()) arguments.emplace_back(range, argument.name, found->second);
    }
    Value* result = emitBuiltinCall(range, graph_, target.name, {}, arguments);
    std::vector<Value*> results;
    if (result->type()->kind() == TypeKind::Tuple) {
      results = graph_.insertNode(graph_.createTupleUnpack(result))->outputs();
    } else {
      results.push_back(result);
    }
    builder_.bindOutputs(node_, joined(std::move(results), written));
  }

  static bool isWritten(const Argument& argument) {
    return argument.alias && argument.alias->is_write;
  }

  void functionalized() {
    const Target target = targetNamed(argument(0, OperandKind::Operator).text);
    KeyedMap<std::string, Value*> given;
    for (size_t i = 1; i < node_.inputs.size(); ++i) {
      given[node_.inputs[i].name] = builder_.valueOf(node_.inputs[i].operand);
    }
    std::vector<Value*> written;
    for (const Argument& argument : target.op->schema().arguments()) {
      const auto found = given.find(argument.name);
      if (found == given.end() || !isWritten(argument)) continue;
      if (found->second->type()->kind() == TypeKind::Tensor) {
        found->second = builtin("aten::clone", {found->second});
      }
      written.push_back(found->second);
    }
    callWith(target, given, written);
  }

  // The written arguments are views of bases, which are described one by one.
  void functionalizedViews() {
    const Target target = targetNamed(argument(0, OperandKind::Operator).text);
    KeyedMap<std::string, const Operand*> options;
    for (size_t i = 1; i < node_.inputs.size(); ++i) {
      options[node_.inputs[i].name] = &node_.inputs[i].operand;
    }
    std::vector<Value*> bases;
    if (const auto found = options.find(std::string("_all_bases")); found != options.end()) {
      for (const Operand& base : found->second->elements) {
        bases.push_back(builtin("aten::clone", {builder_.valueOf(base)}));
      }
    }
    KeyedMap<std::string, Value*> given;
    for (const Argument& argument : target.op->schema().arguments()) {
      const std::string prefix = "_" + argument.name;
      if (const auto found = options.find(argument.name); found != options.end()) {
        given[argument.name] = builder_.valueOf(*found->second, argument.type);
      } else if (const auto count = options.find(prefix + "_length"); count != options.end()) {
        std::vector<Value*> views;
        // Each of them has options of its own.
        if (count->second->kind != OperandKind::Int || count->second->integer < 0 ||
            count->second->integer > static_cast<int64_t>(options.size())) {
          fail(fmt::format("'{}_length' is no number of views", prefix));
        }
        for (int64_t i = 0; i < count->second->integer; ++i) {
          views.push_back(view(options, fmt::format("{}_{}", prefix, i), bases));
          if (views.back()->type()->kind() != TypeKind::Tensor) {
            fail(fmt::format("the view '{}_{}' is no tensor", prefix, i));
          }
        }
        given[argument.name] =
            graph_.insertNode(graph_.createList(types::Tensor(), views))->output();
      } else if (options.contains(prefix + "_base_index")) {
        given[argument.name] = view(options, prefix, bases);
      }
    }
    callWith(target, given, bases);
  }

  Value* view(const KeyedMap<std::string, const Operand*>& options, const std::string& prefix,
              const std::vector<Value*>& bases) {
    const auto option = [&](const char* name) -> const Operand* {
      const auto found = options.find(prefix + name);
      return found == options.end() ? nullptr : found->second;
    };
    const Operand* index = option("_base_index");
    if (!index || index->kind == OperandKind::None) {
      return graph_.insertNode(graph_.createNone())->output();
    }
    if (index->kind != OperandKind::Int || index->integer < 0 ||
        index->integer >= static_cast<int64_t>(bases.size())) {
      fail(fmt::format("'{}_base_index' is the number of no base", prefix));
    }
    Value* base = bases[static_cast<size_t>(index->integer)];
    if (const Operand* size = option("_size")) {
      const Operand* stride = option("_stride");
      const Operand* offset = option("_storage_offset");
      if (!stride || !offset) fail(fmt::format("the view '{}' lacks strides or an offset", prefix));
      return builtin("aten::as_strided", {base, builder_.valueOf(*size), builder_.valueOf(*stride),
                                          builder_.valueOf(*offset)});
    }
    if (const Operand* dim = option("_slice_dim")) {
      const Operand* start = option("_slice_start");
      const Operand* end = option("_slice_end");
      if (!start || !end) fail(fmt::format("the view '{}' lacks a start or an end", prefix));
      return builtin("aten::slice", {base, builder_.valueOf(*dim), builder_.valueOf(*start),
                                     builder_.valueOf(*end)});
    }
    return base;
  }

  // Operators with effects in the order of tokens; nodes keep their order here.
  void withEffects() {
    const Target target = targetNamed(argument(1, OperandKind::Operator).text);
    const std::span<const NamedOperand> rest = std::span(node_.inputs).subspan(2);
    std::vector<Value*> results = builder_.call(node_, target.name, target.overload, rest);
    results.insert(results.begin(), graph_.insertNode(graph_.createNone())->output());
    for (size_t i = 0; i < node_.outputs.size() && i < results.size(); ++i) {
      builder_.bindOutput(node_.outputs[i], results[i]);
    }
  }

  // An operator of integers whose result has another dtype: the tensors are converted before.
  void outDType() {
    const Target target = targetNamed(argument(0, OperandKind::Operator).text);
    Value* dtype = builder_.valueOf(argument(1, OperandKind::ScalarType));
    const SourceRange& range = graph_.currentRange();
    std::vector<NamedValue> arguments;
    for (size_t i = 2; i < node_.inputs.size(); ++i) {
      Value* value = builder_.valueOf(node_.inputs[i].operand);
      if (value->type()->kind() == TypeKind::Tensor) value = builtin("aten::to", {value, dtype});
      arguments.emplace_back(range, value);
    }
    builder_.bindOutputs(node_, {emitBuiltinCall(range, graph_, target.name, arguments)});
  }

  GraphBuilder& builder_;
  Graph& graph_;
  const NodeRecord& node_;
};

bool isHigherOrderOperator(std::string_view name) {
  return HigherOrder::find(name) != nullptr;
}

void GraphBuilder::emitHigherOrder(const NodeRecord& node, std::string_view name) {
  HigherOrder(*this, node).emit(name);
}

}  // namespace wick::exported
