#include "autograd/region_derivative.h"

#include <algorithm>

#include "autograd/anomaly.h"
#include "autograd/gradients.h"
#include "autograd/region_plans.h"
#include "autograd/saved_uses.h"
#include "autograd/saved_value.h"
#include "autograd/tape.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "runtime/executor/graph_executor.h"

namespace wick::autograd {

namespace {

// A call on the tape. Its results are those of the plan's forward function, so that what is saved
// beside the body's results has derivatives of its own.
class RegionNode : public GraphNode {
 public:
  RegionNode(std::shared_ptr<const RegionPlan> plan, const IValue* arguments)
      : plan_(std::move(plan)), saved_(plan_->saved().size()) {
    std::vector<Edge> edges;
    for (const size_t i : plan_->arguments())
      edges.push_back(gradientEdge(arguments[i].toTensor()));
    setNext(std::move(edges));
    for (const RegionPlan::Number& n : plan_->numbers()) {
      const bool known = n.argument;
      numbers_.push_back(known ? arguments[n.index].toTensor().size(static_cast<int64_t>(n.dim))
                               : 0);
    }
    noteHeld(saved_.bytes() + numbers_.capacity() * sizeof(int64_t));
    for (size_t i = 0; i < saved_.size(); ++i) {
      const auto& [kind, index] = plan_->saved()[i];
      if (kind == RegionPlan::Saved::Kind::Argument) {
        saved_.set(i, SavedValue::argument(arguments[index]));
      }
    }
  }

  void saveResults(const std::vector<IValue>& results) {
    for (size_t i = 0; i < saved_.size(); ++i) {
      const auto& [kind, index] = plan_->saved()[i];
      if (kind == RegionPlan::Saved::Kind::Result) {
        // What needs no gradient must not look as if it did.
        saved_.set(i, plan_->needsGradient(index)
                          ? SavedValue::result(results[index], static_cast<uint32_t>(index))
                          : SavedValue::argument(results[index]));
      }
    }
    for (size_t i = 0; i < numbers_.size(); ++i) {
      const RegionPlan::Number& n = plan_->numbers()[i];
      if (!n.argument) numbers_[i] = results[n.index].toInt();
    }
  }

  std::string name() const override { return "DifferentiableGraphBackward"; }

  std::vector<bool> resultsLeadingTo(const std::vector<bool>& wanted) const override {
    const uint64_t leading = plan_->operators().resultsLeadingTo(bitsOf(wanted));
    std::vector<bool> results(shapes().size());
    for (size_t i = 0; i < results.size() && i < 64; ++i) results[i] = (leading >> i & 1) != 0;
    return results;
  }

  std::vector<Tensor> applyFor(const std::vector<Tensor>& gradients, Wanted wanted,
                               bool last) override {
    Ends walk{0, wanted ? bitsOf(*wanted) : plan_->argumentBits()};
    for (size_t i = 0; i < gradients.size() && i < 64; ++i) {
      const bool is = gradients[i].defined() && plan_->needsGradient(i);
      walk.results |= static_cast<uint64_t>(is) << i;
    }
    const std::shared_ptr<const RegionPlan::Backward> backward = plan_->backward(walk);
    std::vector<Tensor> out(plan_->arguments().size());
    if (!backward->function) return out;
    std::vector<IValue> arguments;
    // The function lets go of each value when it was read for the last time.
    saved_.read(*this, plan_->uses(), backward->passage, last, [&](const auto& saved) {
      using Kind = RegionPlan::Backward::Parameter::Kind;
      for (const auto& [kind, index] : backward->parameters) {
        if (kind == Kind::Gradient) {
          arguments.emplace_back(gradients.at(index));
        } else if (kind == Kind::Number) {
          arguments.emplace_back(numbers_.at(index));
        } else {
          arguments.push_back(saved(index));
        }
      }
    });
    const IValue found = runFunction(*backward->function, std::move(arguments));
    for (size_t k = 0; k < backward->found.size(); ++k) {
      out[backward->found[k]] = found.elements().at(k).toTensor();
    }
    return out;
  }

 private:
  uint64_t bitsOf(const std::vector<bool>& edges) const {
    uint64_t bits = 0;
    for (size_t k = 0; k < edges.size(); ++k) {
      if (edges[k]) bits |= uint64_t{1} << plan_->arguments()[k];
    }
    return bits;
  }

  const std::shared_ptr<const RegionPlan> plan_;
  SavedOfGraph saved_;
  std::vector<int64_t> numbers_;  // plan_->numbers() of this call
};

class RegionDerivative : public SiteDerivative {
 public:
  explicit RegionDerivative(const wick::Node& graph)
      : plain_(graph.subgraph(attr::Subgraph)->copy()),
        plans_(graph.subgraph(attr::Subgraph), writesTo(graph)) {}

  bool computesAlone() const override { return true; }

  bool compute(const IValue* arguments, size_t num_arguments, IValue* results,
               size_t num_results) override {
    return plain_.compute(arguments, num_arguments, results, num_results);
  }

  bool run(const IValue* arguments, size_t num_arguments, IValue* results, size_t num_results,
           const std::function<bool()>&) override {
    // Whoever looks for the operator that makes a NaN wants each by itself.
    if (detectsAnomaly()) return false;
    const std::optional<uint64_t> mask = argumentsWithGradients(arguments, num_arguments);
    if (!mask || *mask == 0) return false;
    const std::shared_ptr<const RegionPlan> plan = plans_.planFor(arguments, num_arguments, *mask);
    if (!plan) return false;
    // What is saved is noted before the results may take the arguments' place.
    Ref<RegionNode> node = makeRef<RegionNode>(plan, arguments);
    IValue found;
    {
      const BelowRecorder below;
      found =
          runFunction(plan->forward(), std::vector<IValue>(arguments, arguments + num_arguments));
    }
    const std::vector<IValue>& all = found.elements();
    for (size_t i = 0; i < plan->numForwardResults(); ++i) {
      if (!all[i].isTensor() || plan->sameAs(i)) {
        node->addAbsentResult();
      } else if (i < num_results && plan->needsGradient(i)) {
        setHistory(all[i].toTensor(), node);
      } else {
        node->addResult(all[i].toTensor());
      }
    }
    node->saveResults(all);
    for (size_t i = 0; i < num_results; ++i) results[i] = resultOf(*plan, arguments, all, i);
    return true;
  }

 private:
  PlainFunction plain_;
  RegionPlans plans_;
};

// prim::JointGraphs (runtime/fusion/form_groups.cpp): a region and the call that differentiates a
// result of it, without the tape. The region's plan is forward and backward of the whole loss, cut
// where least is saved. Both run one after the other; what passes between them is let go of when it
// was read for the last time. Where gradients would flow on to others, and where there is an error
// to raise, the call runs as it stands in the program.
class JointDerivative : public SiteDerivative {
 public:
  explicit JointDerivative(const Graph& body) {
    const wick::Node* region = nullptr;
    const wick::Node* call = nullptr;
    for (const wick::Node* node : body.nodes()) {
      if (node->kind() == prim::DifferentiableGraph) region = node;
      if (!node->kind().isPrim()) call = node;
    }
    WICK_ASSERT(region && call, "a joint graph without its parts");
    // Nobody writes between the call and its gradient.
    plans_.emplace(region->subgraph(attr::Subgraph), RegionPlan::Writes());
    for (const Value* v : region->inputs()) region_inputs_.push_back(inputNumber(v));
    const bool of_list = call->input(0)->node()->kind() == prim::ListConstruct;
    const Value* loss = of_list ? call->input(0)->node()->input(0) : call->input(0);
    loss_ = loss->offset();
    returns_ = !call->outputs().empty();
    if (returns_) {
      for (const Value* v : call->input(1)->node()->inputs()) wanted_.push_back(inputNumber(v));
      allows_unused_ = constantOf(call->input(5))->toBool();
    }
    for (const Value* v : body.outputs()) {
      if (v->node() == region) results_.push_back(v->offset());
    }
    const auto known = [](const std::optional<size_t>& i) { return i.has_value(); };
    fits_ = std::ranges::all_of(region_inputs_, known) && std::ranges::all_of(wanted_, known);
  }

  bool run(const IValue* arguments, size_t, IValue* results, size_t,
           const std::function<bool()>&) override {
    if (!fits_ || detectsAnomaly()) return false;
    std::vector<IValue> given;
    for (const auto& i : region_inputs_) given.push_back(arguments[*i]);
    const std::optional<uint64_t> requiring = argumentsWithGradients(given.data(), given.size());
    std::vector<size_t> wanted;  // arguments of the region
    if (!requiring || !areLeaves(given, *requiring) ||
        !findWanted(arguments, given, *requiring, wanted)) {
      return false;
    }
    uint64_t mask = 0;
    for (const size_t i : wanted) mask |= uint64_t{1} << i;
    if (mask == 0) return false;
    const auto plan = plans_->planFor(given.data(), given.size(), mask);
    if (!plan || !plan->isScalar(loss_) || !plan->needsGradient(loss_)) return false;
    const auto backward = plan->backward({uint64_t{1} << loss_, plan->argumentBits()});
    const auto isFound = [&](size_t argument) {
      return std::ranges::any_of(backward->found,
                                 [&](size_t k) { return plan->arguments()[k] == argument; });
    };
    if (returns_ && !allows_unused_ && !std::ranges::all_of(wanted, isFound)) return false;
    const std::vector<Tensor> gradients = compute(*plan, *backward, std::move(given), results);
    if (!returns_) {
      accumulate(arguments, gradients);
      return true;
    }
    ListRef list = makeList(std::make_shared<const OptionalType>(types::Tensor()));
    for (const size_t i : wanted) {
      const Tensor& g = gradients[i];
      list->elements.push_back(g.defined() ? IValue(g) : IValue());
    }
    results[results_.size()] = IValue(std::move(list));
    return true;
  }

 private:
  // Which input of the joint graph a value is.
  static std::optional<size_t> inputNumber(const Value* v) {
    if (v->node()->kind() != prim::Param) return std::nullopt;
    return v->offset();
  }

  // Whether gradients end at the arguments: each is a leaf, and another one.
  static bool areLeaves(const std::vector<IValue>& given, uint64_t requiring) {
    std::vector<const void*> seen;
    for (size_t i = 0; i < given.size(); ++i) {
      if ((requiring >> i & 1) == 0) continue;
      const Tensor t = given[i].toTensor();
      if (!isLeaf(t) || std::ranges::count(seen, t.impl()) > 0) return false;
      seen.push_back(t.impl());
    }
    return true;
  }

  bool findWanted(const IValue* arguments, const std::vector<IValue>& given, uint64_t requiring,
                  std::vector<size_t>& wanted) const {
    if (!returns_) {
      for (size_t i = 0; i < given.size(); ++i) {
        if ((requiring >> i & 1) != 0) wanted.push_back(i);
      }
      return true;
    }
    for (const auto& w : wanted_) {
      const Tensor t = arguments[*w].toTensor();
      size_t i = 0;
      while (i < given.size() &&
             !((requiring >> i & 1) != 0 && given[i].toTensor().impl() == t.impl())) {
        ++i;
      }
      if (i == given.size()) return false;
      wanted.push_back(i);
    }
    return true;
  }

  // Of each argument of the region; undefined where there is none. Sets what others read of the
  // region's results.
  std::vector<Tensor> compute(const RegionPlan& plan, const RegionPlan::Backward& backward,
                              std::vector<IValue> given, IValue* results) const {
    using Kind = RegionPlan::Backward::Parameter::Kind;
    const BelowRecorder below;
    std::vector<IValue> between;
    {
      const IValue forward = runFunction(plan.forward(), given);
      const std::vector<IValue>& all = forward.elements();
      for (size_t i = 0; i < results_.size(); ++i) {
        results[i] = resultOf(plan, given.data(), all, results_[i]);
      }
      for (const auto& [kind, index] : backward.parameters) {
        if (kind == Kind::Gradient) {
          between.emplace_back(Tensor::full({}, 1, all[loss_].toTensor().dtype()));
        } else if (kind == Kind::Number) {
          const RegionPlan::Number& n = plan.numbers()[index];
          between.push_back(
              n.argument ? IValue(given[n.index].toTensor().size(static_cast<int64_t>(n.dim)))
                         : all[n.index]);
        } else {
          const RegionPlan::Saved& s = plan.saved()[index];
          const bool argument = s.kind == RegionPlan::Saved::Kind::Argument;
          between.push_back(argument ? given[s.index] : all[s.index]);
        }
      }
    }
    std::vector<Tensor> gradients(given.size());
    if (!backward.function) return gradients;
    std::vector<Shape> shapes;
    for (const size_t k : backward.found) {
      shapes.emplace_back(given[plan.arguments()[k]].toTensor());
    }
    // The function lets go of each value when it was read for the last time.
    given.clear();
    const IValue found = runFunction(*backward.function, std::move(between));
    for (size_t k = 0; k < backward.found.size(); ++k) {
      gradients[plan.arguments()[backward.found[k]]] =
          fitted(found.elements().at(k).toTensor(), shapes[k], "DifferentiableGraphBackward");
    }
    return gradients;
  }

  void accumulate(const IValue* arguments, const std::vector<Tensor>& gradients) const {
    const BelowRecorder below;
    for (size_t i = gradients.size(); i-- > 0;) {
      if (!gradients[i].defined()) continue;
      const Ref<Leaf> leaf = leafFor(arguments[*region_inputs_[i]].toTensor());
      leaf->apply({leaf->passGradient(0, gradients[i])});
    }
  }

  std::optional<RegionPlans> plans_;
  std::vector<std::optional<size_t>> region_inputs_, wanted_;  // inputs of the joint graph
  std::vector<size_t> results_;                                // of the region, that others read
  size_t loss_ = 0;                                            // of the region's results
  bool returns_ = false;  // the gradients, instead of adding them to those of leaves
  bool allows_unused_ = false;
  bool fits_ = false;
};

}  // namespace

std::unique_ptr<SiteDerivative> makeRegionDerivative(const wick::Node& graph) {
  const std::shared_ptr<const Graph> body = graph.subgraph(attr::Subgraph);
  const auto isGraph = [](const wick::Node* node) {
    return node->kind() == prim::DifferentiableGraph;
  };
  if (std::ranges::any_of(body->nodes(), isGraph)) return std::make_unique<JointDerivative>(*body);
  return std::make_unique<RegionDerivative>(graph);
}

RegionPlan::Writes writesTo(const wick::Node& graph) {
  const auto maskOf = [&](Symbol name) {
    return graph.hasAttribute(name) ? static_cast<uint64_t>(graph.ivalue(name).toInt()) : 0;
  };
  return {maskOf(SiteDerivative::writtenInputs()), maskOf(SiteDerivative::writtenOutputs())};
}

PlainFunction::PlainFunction(std::shared_ptr<Graph> graph) {
  const std::vector<Value*> results(graph->outputs().begin(), graph->outputs().end());
  Value* tuple = graph->insertNode(graph->createTuple(results))->output();
  while (!graph->outputs().empty()) graph->block()->eraseOutput(graph->outputs().size() - 1);
  graph->registerOutput(tuple);
  function_ = unit_.createFunction("__torch__.plain", std::move(graph));
}
bool PlainFunction::compute(const IValue* arguments, size_t num_arguments, IValue* results,
                            size_t num_results) const {
  const IValue found =
      runFunction(*function_, std::vector<IValue>(arguments, arguments + num_arguments));
  for (size_t i = 0; i < num_results; ++i) results[i] = found.elements()[i];
  return true;
}

std::optional<uint64_t> argumentsWithGradients(const IValue* arguments, size_t num_arguments) {
  if (num_arguments > 64) return std::nullopt;
  uint64_t mask = 0;
  std::optional<DType> dtype;
  for (size_t i = 0; i < num_arguments; ++i) {
    const IValue& a = arguments[i];
    if (!a.isTensor()) continue;
    const Tensor t = a.toTensor();
    if (isComplex(t.dtype()) || t.kind() != TensorKind::Dense || !t.device().isCpu()) {
      return std::nullopt;
    }
    if (isFloating(t.dtype())) {
      if (dtype && *dtype != t.dtype()) return std::nullopt;
      dtype = t.dtype();
    }
    if (requiresGradient(t)) mask |= uint64_t{1} << i;
  }
  if (!dtype || isReducedFloat(*dtype)) return std::nullopt;
  return mask;
}

}  // namespace wick::autograd
