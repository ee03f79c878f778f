// Describing a graph and building it walk over the same operands in the same order: values are
// numbered by their first use, and what is handed over is an argument at its first use.
#include "lazy/program.h"

#include <algorithm>
#include <list>
#include <unordered_map>

#include "core/budget.h"
#include "core/error.h"
#include "core/unlimited_memory.h"
#include "lazy/donation.h"
#include "lazy/rolling.h"
#include "runtime/executor/graph_executor.h"
#include "runtime/fusion/group_backend.h"
#include "runtime/fusion/operator_site.h"
#include "runtime/interpreter/interpreter.h"

namespace wick::lazy {

namespace {

template <class T>
void append(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void describeConstant(std::string& key, const IValue& v) {
  if (v.isList()) {
    append(key, v.tag());
    append(key, v.elements().size());
    for (const IValue& e : v.elements()) describeConstant(key, e);
  } else if (v.isComplex()) {
    append(key, v.tag());
    append(key, v.toComplex());
  } else if (!wick::appendConstant(key, v)) {
    throwRuntimeError("a value of type {} cannot be recorded", v.type()->annotation());
  }
}

class Describer {
 public:
  Describer(Description& into, size_t values) : into_(into), numbers_(values, kNoValue) {}

  void value(ValueId id, const Tensor* data) {
    std::string& key = into_.key;
    if (id == kNoValue) {
      key += 'n';
      return;
    }
    ValueId& number = numbers_[id];
    if (number == kNoValue) {
      number = next_++;
      WICK_ASSERT(data, "a lazy value is used before it is computed");
      key += 'd';
      append(key, data->dtype());
      append(key, data->dim());
      into_.arguments.emplace_back(*data);
      return;
    }
    key += 'v';
    append(key, number);
  }
  void results(const Record& record) {
    for (uint32_t i = 0; i < record.count; ++i) numbers_[record.first + i] = next_++;
  }

 private:
  Description& into_;
  std::vector<ValueId> numbers_;
  ValueId next_ = 0;
};

// A record's text. `value` writes a value, `hand_over` gets what is handed over.
template <class V, class H>
void appendRecord(std::string& key, const Record& record, V&& value, H&& hand_over) {
  append(key, record.op);
  append(key, record.cloned);
  append(key, record.results.size());
  for (const int64_t n : record.results) append(key, n);
  for (const Operand& operand : record.operands) {
    append(key, operand.kind);
    switch (operand.kind) {
      case Operand::Kind::Value:
        value(operand.values[0]);
        break;
      case Operand::Kind::Values:
        append(key, operand.values.size());
        for (const ValueId id : operand.values) value(id);
        break;
      case Operand::Kind::Constant:
        describeConstant(key, operand.value);
        break;
      case Operand::Kind::Number:
        append(key, operand.value.tag());
        operand.values.size() == 0 ? hand_over(operand.value) : value(operand.values[0]);
        break;
      case Operand::Kind::Ints:
        append(key, operand.value.elements().size());
        for (size_t e = 0; e < operand.value.elements().size(); ++e) {
          const IValue& number = operand.value.elements()[e];
          if (operand.values.size() != 0 && operand.values[e] != kNoValue) {
            key += 'v';
            value(operand.values[e]);
          } else if (operand.values.size() == 0 && isParameter(number.toInt())) {
            key += '#';
            hand_over(number);
          } else {
            append(key, static_cast<char>(number.toInt()));
          }
        }
        break;
      case Operand::Kind::Sequence: {
        const IValue& first = operand.value.elements()[0];
        append(key, first.tag());
        if (first.isTensor()) {
          append(key, first.toTensor().dtype());
          append(key, first.toTensor().dim());
        }
        hand_over(operand.value);
        break;
      }
    }
  }
}

void appendLoop(std::string& key, const Loop& loop) {
  append(key, loop.parameters.size());
  for (const Loop::Parameter& parameter : loop.parameters) {
    append(key, parameter.role);
    append(key, parameter.next);
    append(key, parameter.start);
    append(key, parameter.step);
    append(key, parameter.is_number);
  }
  append(key, loop.block.size());
  for (const Record& record : loop.block) {
    append(key, record.first);
    appendRecord(
        key, record, [&](ValueId id) { append(key, id); },
        [](const IValue&) { throwRuntimeError("a loop's block hands over a number"); });
  }
  for (const Loop::Result& result : loop.results) {
    append(key, result.value);
    append(key, result.parameter);
  }
}

struct Cache {
  struct Entry {
    std::shared_ptr<Program> program;
    std::list<const std::string*>::iterator at;
  };
  std::unordered_map<std::string, Entry> entries;
  std::list<const std::string*> order;  // the last one was used last
  size_t limit = 512;

  void trim(size_t most) {
    while (entries.size() > most) {
      const std::string oldest = *order.front();
      order.pop_front();
      entries.erase(oldest);
    }
  }
};
// Synchronized by mutex(). Threads may outlive main.
Cache& cache() {
  static Cache& made = *new Cache;
  return made;
}

ThreadContext plainContext() {
  ThreadContext context;
  context.grad_enabled = false;
  context.below_recorder = true;
  return context;
}

}  // namespace

ComputeScope::ComputeScope() : context_(plainContext()) {}

Description Program::describe(const Graph& graph, const Graph::Plan& plan,
                              const std::vector<bool>& spare) {
  Description made;
  Describer describer(made, graph.origins_.size());
  std::string& key = made.key;
  const auto value = [&](ValueId id) {
    const Tensor* data = nullptr;
    if (id != kNoValue && graph.origins_[id].record == Graph::kInput) {
      data = &graph.inputs_[graph.origins_[id].index];
    }
    describer.value(id, data);
  };
  for (const uint32_t at : plan.records) {
    const Record& record = graph.records_[at];
    appendRecord(key, record, value, [&](const IValue& v) { made.arguments.push_back(v); });
    if (record.loop) appendLoop(key, *record.loop);
    describer.results(record);
  }
  key += 'r';
  for (const ValueId id : plan.outputs) value(id);
  for (const bool one : spare) made.donates |= one;
  if (made.donates) {
    // By the inputs' own numbers: what they are follows from the rest.
    key += 'm';
    for (const ArgumentSource& source : sources(graph, plan)) {
      if (source.kind == ArgumentSource::Kind::Input) key += spare[source.index] ? '1' : '0';
    }
  }
  return made;
}

std::vector<ArgumentSource> Program::sources(const Graph& graph, const Graph::Plan& plan) {
  std::vector<ArgumentSource> made;
  std::vector<bool> seen(graph.origins_.size());
  using Kind = ArgumentSource::Kind;
  const auto value = [&](ValueId id) {
    if (id == kNoValue || seen[id]) return;
    seen[id] = true;
    const Graph::Origin& origin = graph.origins_[id];
    made.push_back(origin.record == Graph::kInput ? ArgumentSource{Kind::Input, origin.index}
                                                  : ArgumentSource{Kind::Value, id});
  };
  uint32_t number = 0;
  size_t next = 0;  // in the plan
  for (uint32_t r = 0; r < graph.records_.size(); ++r) {
    const bool wanted = next < plan.records.size() && plan.records[next] == r;
    if (wanted) ++next;
    for (const Operand& operand : graph.records_[r].operands) {
      const bool one =
          operand.kind == Operand::Kind::Number || operand.kind == Operand::Kind::Sequence;
      uint32_t handed_over = one ? 1 : 0;
      if (operand.kind == Operand::Kind::Ints) {
        for (const IValue& e : operand.value.elements()) handed_over += isParameter(e.toInt());
      }
      for (uint32_t i = 0; i < handed_over; ++i, ++number) {
        if (wanted) made.push_back({Kind::Number, number});
      }
      for (const ValueId id : operand.values) {
        if (wanted) value(id);
      }
    }
    if (!wanted) continue;
    const Record& record = graph.records_[r];
    for (uint32_t i = 0; i < record.count; ++i) seen[record.first + i] = true;
  }
  for (const ValueId id : plan.outputs) value(id);
  return made;
}

namespace {

// Writes the records as nodes.
class Builder {
 public:
  Builder(wick::Graph& into, size_t values) : into_(into), values_(values, nullptr) {}
  // For a loop's block: its parameters are there.
  Builder(wick::Graph& into, std::vector<Value*> values)
      : into_(into), values_(std::move(values)) {}

  Value* value(ValueId id) {
    if (id == kNoValue) return into_.insertNode(into_.createNone())->output();
    if (!values_[id]) values_[id] = into_.addInput("", types::Tensor());
    return values_[id];
  }

  void add(const Record& record) {
    into_.setCurrentRange(record.place);
    if (record.loop) return addLoop(record);
    const FunctionSchema& schema = record.op->schema();
    std::vector<Value*> inputs, copies;
    for (size_t i = 0; i < record.operands.size(); ++i) {
      inputs.push_back(operand(record.operands[i], schema.arguments()[i].type));
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      if ((record.cloned >> i & 1) == 0) continue;
      inputs[i] = copy(inputs[i]);
      copies.push_back(inputs[i]);
    }
    Node* node = into_.create(record.op->symbol(), inputs, record.results.size());
    node->setOperator(record.op);
    into_.insertNode(node);
    ValueId next = record.first;
    for (size_t r = 0; r < record.results.size(); ++r) {
      Value* result = node->output(r);
      if (record.results[r] == Record::kOne) {
        result->setType(types::Tensor());
        values_[next++] = result;
        continue;
      }
      result->setType(types::List(types::Tensor()));
      if (record.results[r] == Record::kList) {
        values_[next++] = result;
        continue;
      }
      const auto count = static_cast<size_t>(record.results[r]);
      Node* unpack = into_.insertNode(into_.createListUnpack(result, count));
      for (Value* part : unpack->outputs()) values_[next++] = part;
    }
    for (Value* made : copies) values_[next++] = made;
  }

 private:
  Value* constant(const IValue& v) {
    return v.isNone() ? into_.insertNode(into_.createNone())->output() : into_.insertConstant(v);
  }
  Value* copy(Value* of) {
    static const Operator& clone = operatorNamed("aten::clone", "");
    Node* node = into_.create(clone.symbol(), {of, constant(IValue())});
    node->setOperator(&clone);
    return into_.insertNode(node)->output();
  }
  Value* call(const char* name, const char* overload, std::initializer_list<Value*> arguments,
              const TypePtr& type) {
    const Operator& op = operatorNamed(name, overload);
    Node* node = into_.create(op.symbol(), arguments);
    node->setOperator(&op);
    node->output()->setType(type);
    return into_.insertNode(node)->output();
  }

  void addLoop(const Record& record) {
    using Role = Loop::Parameter::Role;
    const Loop& loop = *record.loop;
    std::vector<Value*> given;
    for (const Operand& one : record.operands) given.push_back(operand(one, types::Tensor()));
    std::vector<Value*> lists;
    for (const Loop::Result& result : loop.results) {
      lists.push_back(result.value == kNoValue
                          ? nullptr
                          : into_.insertNode(into_.createList(types::Tensor(), {}))->output());
    }
    Value* yes = into_.insertConstant(IValue(true));
    Node* node = into_.create(prim::Loop, {given[0], yes}, 0);
    Block* block = node->addBlock();
    Value* trip = block->addInput(types::Int());
    std::vector<Value*> inside(loop.values, nullptr), ends(loop.parameters.size(), nullptr);
    for (size_t p = 0; p < loop.parameters.size(); ++p) {
      inside[p] = given[p + 1];
      if (loop.parameters[p].role != Role::Carried) continue;
      node->addInput(given[p + 1]);
      ends[p] = node->addOutput(types::Tensor());
      inside[p] = block->addInput(types::Tensor());
    }
    into_.insertNode(node);
    {
      InsertPointGuard guard(block->returnNode());
      for (size_t p = 0; p < loop.parameters.size(); ++p) {
        if (loop.parameters[p].role == Role::Each) {
          inside[p] = elementOf(inside[p], loop.parameters[p], trip);
        }
      }
      Builder body(into_, std::move(inside));
      for (const Record& one : loop.block) body.add(one);
      into_.setCurrentRange(record.place);
      for (size_t r = 0; r < loop.results.size(); ++r) {
        if (!lists[r]) continue;
        call("aten::append", "t", {lists[r], body.value(loop.results[r].value)},
             types::List(types::Tensor()));
      }
      block->registerOutput(yes);
      for (const Loop::Parameter& parameter : loop.parameters) {
        if (parameter.role == Role::Carried) block->registerOutput(body.value(parameter.next));
      }
    }
    for (size_t r = 0; r < loop.results.size(); ++r) {
      values_[record.first + r] = lists[r] ? lists[r] : ends[loop.results[r].parameter];
    }
  }
  Value* elementOf(Value* list, const Loop::Parameter& parameter, Value* trip) {
    Value* index = trip;
    if (parameter.step != 1) {
      index = call("aten::mul", "int", {index, into_.insertConstant(IValue(parameter.step))},
                   types::Int());
    }
    if (parameter.start != 0) {
      index = call("aten::add", "int", {index, into_.insertConstant(IValue(parameter.start))},
                   types::Int());
    }
    return call("aten::__getitem__", "t", {list, index}, list->type()->as<ListType>()->element());
  }

  Value* operand(const Operand& operand, const TypePtr& declared) {
    switch (operand.kind) {
      case Operand::Kind::Value:
        return value(operand.values[0]);
      case Operand::Kind::Values: {
        std::vector<Value*> elements;
        for (const ValueId id : operand.values) elements.push_back(value(id));
        const auto* optional = declared->as<OptionalType>();
        const auto* list = (optional ? optional->element() : declared)->as<ListType>();
        const bool known = list && list->element()->kind() != TypeKind::Var;
        return into_
            .insertNode(into_.createList(known ? list->element() : types::Tensor(), elements))
            ->output();
      }
      case Operand::Kind::Constant:
        return constant(operand.value);
      case Operand::Kind::Number:
        if (operand.values.size() != 0) return value(operand.values[0]);
        return into_.addInput("", operand.value.isInt() ? types::Int() : types::Float());
      case Operand::Kind::Ints: {
        std::vector<Value*> elements;
        for (size_t e = 0; e < operand.value.elements().size(); ++e) {
          const IValue& number = operand.value.elements()[e];
          if (operand.values.size() != 0 && operand.values[e] != kNoValue) {
            elements.push_back(value(operand.values[e]));
          } else if (operand.values.size() == 0 && isParameter(number.toInt())) {
            elements.push_back(into_.addInput("", types::Int()));
          } else {
            elements.push_back(into_.insertConstant(number));
          }
        }
        return into_.insertNode(into_.createList(types::Int(), elements))->output();
      }
      case Operand::Kind::Sequence: {
        const IValue& first = operand.value.elements()[0];
        const TypePtr element = first.isTensor() ? types::Tensor()
                                : first.isInt()  ? types::Int()
                                                 : types::Float();
        return into_.addInput("", types::List(element));
      }
    }
    throwRuntimeError("an operand of an unknown kind");
  }

  wick::Graph& into_;
  std::vector<Value*> values_;
};

}  // namespace

std::shared_ptr<wick::Graph> Program::build(const Graph& graph, const Graph::Plan& plan) {
  auto made = std::make_shared<wick::Graph>();
  Builder builder(*made, graph.origins_.size());
  for (const uint32_t at : plan.records) builder.add(graph.records_[at]);
  made->setCurrentRange(SourceRange());
  for (const ValueId id : plan.outputs) made->registerOutput(builder.value(id));
  return made;
}

Program::Part Program::makePart(const Graph& graph, const Graph::Plan& plan,
                                const std::vector<ArgumentSource>& given,
                                const std::vector<ValueId>& computed) {
  Part part;
  part.outputs = plan.outputs.size();
  if (plan.outputs.empty()) return part;
  part.function = std::make_unique<GraphFunction>("lazy graph", build(graph, plan));
  for (const ArgumentSource& source : sources(graph, plan)) {
    if (source.kind == ArgumentSource::Kind::Value) {
      const auto at = std::ranges::lower_bound(computed, source.index);
      part.arguments.push_back({true, static_cast<size_t>(at - computed.begin())});
    } else {
      const auto at = std::ranges::find(given, source);
      part.arguments.push_back({false, static_cast<size_t>(at - given.begin())});
    }
  }
  return part;
}

std::shared_ptr<Program> Program::find(const Graph& graph, const Graph::Plan& plan,
                                       const std::vector<bool>& spare, const Targets& targets,
                                       const std::string& key, bool& compiled) {
  Cache& known = cache();
  const auto found = known.entries.find(key);
  compiled = found == known.entries.end();
  if (!compiled) {
    known.order.splice(known.order.end(), known.order, found->second.at);
    return found->second.program;
  }
  const std::vector<ArgumentSource> given = sources(graph, plan);
  const Split split = Program::split(graph, plan, spare, targets);
  auto made = std::make_shared<Program>();
  made->first_ = makePart(graph, split.first, given, {});
  made->last_ = makePart(graph, split.last, given, split.first.outputs);
  for (const ValueId id : plan.outputs) {
    const auto last = std::ranges::find(split.last.outputs, id);
    const bool is_last = last != split.last.outputs.end();
    const auto first = std::ranges::find(split.first.outputs, id);
    made->outputs_.emplace_back(is_last,
                                static_cast<size_t>(is_last ? last - split.last.outputs.begin()
                                                            : first - split.first.outputs.begin()));
  }
  known.trim(known.limit - 1);
  const auto at = known.entries.emplace(key, Cache::Entry{made, {}}).first;
  at->second.at = known.order.insert(known.order.end(), &at->first);
  return made;
}

std::vector<IValue> Program::runPart(const Part& part, const Code* code,
                                     std::vector<IValue> arguments) {
  IValue result = runCodeWithin(*code, std::move(arguments));
  if (part.outputs == 1) return {std::move(result)};
  return result.elements();
}

std::vector<IValue> Program::run(std::vector<IValue> arguments,
                                 const std::function<void()>& let_go) {
  const ComputeScope scope;
  const auto codeFor = [](const Part& part, std::span<const IValue> given) {
    return &GraphExecutor::of(*part.function).codeFor(given);
  };
  if (!last_.function) {
    const Code* code = codeFor(first_, arguments);
    return runPart(first_, code, std::move(arguments));
  }
  const auto collect = [&](const Part& part, const std::vector<IValue>& first) {
    std::vector<IValue> given;
    for (const Part::From& from : part.arguments) {
      given.push_back(from.of_first ? first[from.index] : arguments[from.index]);
    }
    return given;
  };
  std::vector<IValue> first, last, results(outputs_.size());
  if (first_.function) {
    std::vector<IValue> given = collect(first_, first);
    const Code* code = codeFor(first_, given);
    first = runPart(first_, code, std::move(given));
  }
  std::vector<IValue> given = collect(last_, first);
  const Code* code = codeFor(last_, given);
  checkBudget();
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (!outputs_[i].first) results[i] = first[outputs_[i].second];
  }
  first.clear();
  arguments.clear();
  // From here on nothing stops the run, because it writes over what it began with.
  const BudgetScope no_budget(nullptr);
  const UnlimitedMemoryScope no_limit;
  const WriteOverScope writes_over;
  let_go();
  last = runPart(last_, code, std::move(given));
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i].first) results[i] = last[outputs_[i].second];
  }
  return results;
}

void setProgramCacheSize(size_t programs) {
  const std::lock_guard lock(mutex());
  cache().limit = programs;
  cache().trim(programs);
}

}  // namespace wick::lazy
