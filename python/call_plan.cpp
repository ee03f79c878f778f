#include "python/call_plan.h"

#include <unordered_map>

#include "python/autocast.h"

namespace wick::python {
namespace {

class Planner {
 public:
  Planner(const Graph& graph, size_t max_slots) : graph_(graph), max_slots_(max_slots) {}

  std::unique_ptr<CallPlan> plan() {
    if (graph_.outputs().size() != 1) return nullptr;
    for (const Value* input : graph_.inputs()) define(input);
    plan_->num_arguments = graph_.inputs().size();
    for (Node* node : graph_.nodes()) {
      if (!add(*node) || slots_.size() > max_slots_) return nullptr;
    }
    plan_->num_slots = slots_.size();
    if (plan_->num_slots > max_slots_) return nullptr;
    plan_->result = slots_.at(graph_.outputs()[0]);
    markLastUses();
    nameResult(*graph_.outputs()[0]->node());
    return std::move(plan_);
  }

 private:
  uint16_t define(const Value* value) {
    const auto slot = static_cast<uint16_t>(slots_.size());
    slots_[value] = slot;
    return slot;
  }

  bool add(const Node& node) {
    if (!node.blocks().empty()) return false;
    if (node.kind() == prim::Constant) {
      const Value* output = node.output();
      const auto constant = constantOf(output);
      if (!constant) return false;
      plan_->constants.emplace_back(define(output), *constant);
      return true;
    }
    CallPlan::Step step;
    if (node.kind() == prim::ListConstruct) {
      const auto* list = node.output()->type()->as<ListType>();
      if (!list) return false;
      step.element = list->element();
    } else if (node.kind() != prim::TupleConstruct) {
      step.op = node.maybeOperator();
      if (!step.op || step.op->schema().isVarret() || step.op->schema().isVararg()) return false;
    } else if (node.output()->type()->as<TupleType>() == nullptr ||
               node.output()->type()->as<TupleType>()->isNamed()) {
      return false;
    }
    if (node.inputs().size() > kMaxPlanSlots) return false;
    for (const Value* input : node.inputs()) {
      const auto found = slots_.find(input);
      if (found == slots_.end()) return false;
      step.inputs.push_back(found->second);
    }
    step.num_outputs = static_cast<uint16_t>(node.outputs().size());
    step.first_output = static_cast<uint16_t>(slots_.size());
    for (const Value* output : node.outputs()) define(output);
    plan_->steps.push_back(std::move(step));
    return true;
  }

  void markLastUses() {
    std::vector<bool> read(plan_->num_slots, false);
    read[plan_->result] = true;
    for (auto step = plan_->steps.rbegin(); step != plan_->steps.rend(); ++step) {
      step->last_use.resize(step->inputs.size());
      for (size_t i = step->inputs.size(); i-- > 0;) {
        step->last_use[i] = !read[step->inputs[i]];
        read[step->inputs[i]] = true;
      }
    }
  }

  void nameResult(const Node& node) {
    if (node.kind() != prim::TupleConstruct || node.inputs().empty()) return;
    const Node* producer = node.inputs()[0]->node();
    const Operator* op = producer->maybeOperator();
    if (!op || producer->outputs() != node.inputs()) return;
    std::vector<std::string> names;
    for (const Argument& result : op->schema().returns()) {
      if (result.name.empty()) return;
      names.push_back(result.name);
    }
    plan_->tuple_name = op->schema().name().substr(op->schema().name().rfind(':') + 1);
    plan_->tuple_fields = std::move(names);
  }

  const Graph& graph_;
  const size_t max_slots_;
  std::unique_ptr<CallPlan> plan_ = std::make_unique<CallPlan>();
  std::unordered_map<const Value*, uint16_t> slots_;
};

}  // namespace

IValue CallPlan::run(IValue* slots) const {
  for (const auto& [slot, value] : constants) slots[slot] = value;
  Autocast* const autocast = activeAutocast();
  for (const Step& step : steps) {
    const size_t count = step.inputs.size();
    if (step.op) {
      ValueArray<kMaxPlanSlots> args(count);
      for (size_t i = 0; i < count; ++i) {
        IValue& from = slots[step.inputs[i]];
        args[i] = step.last_use[i] ? std::move(from) : from;
      }
      if (autocast) [[unlikely]]
        autocast->cast(*step.op, {args.data(), count});
      step.op->call(args.data(), count, slots + step.first_output, step.num_outputs);
      continue;
    }
    std::vector<IValue> elements;
    elements.reserve(count);
    for (const uint16_t input : step.inputs) elements.push_back(slots[input]);
    slots[step.first_output] = step.element ? IValue(makeList(step.element, std::move(elements)))
                                            : IValue(makeTuple(std::move(elements)));
  }
  return std::move(slots[result]);
}

std::unique_ptr<CallPlan> planOf(const Graph& graph, size_t max_slots) {
  return Planner(graph, max_slots).plan();
}

}  // namespace wick::python
