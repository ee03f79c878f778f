// Derivatives of prim::DifferentiableGraph of pointwise operators alone, which run as one kernel,
// and whose gradients do too; others are regions (autograd/region_plan.h). For each set of
// arguments that require gradients there is a backward graph, made of the forward nodes and of the
// operators' own formulas in reverse:
//
//   forward(x, y):  a = mul(x, y)      backward(x, y, g):  a = mul(x, y)
//                   b = tanh(a)                            t = tanh(a)
//                                                          ga = g * (1 - t * t)
//                                                          return (ga * y, ga * x)
//
// It is a function with an executor of its own, so it gets kernels, and gradients of gradients are
// those of its operators. Of the forward nodes what no formula reads is gone. What a formula reads
// is computed again rather than saved; the graph's own results are kept where fewer tensors are
// saved so.
#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "autograd/anomaly.h"
#include "autograd/formula_graph.h"
#include "autograd/graph_operators.h"
#include "autograd/loop_region.h"
#include "autograd/region_derivative.h"
#include "autograd/region_graphs.h"
#include "autograd/region_plan.h"
#include "autograd/region_plans.h"
#include "autograd/saved_uses.h"
#include "autograd/saved_value.h"
#include "autograd/tape.h"
#include "core/error.h"
#include "passes/dead_code_elimination.h"
#include "runtime/fusion/site_derivative.h"

namespace wick::autograd {

namespace {

using Source = GradientFunction::Source;

bool isTensor(const Value* v) {
  return v->type()->kind() == TypeKind::Tensor;
}

bool differentiable(const wick::Node* node) {
  const Operator* op = node->maybeOperator();
  if (!op || op->form() != Operator::Form::Base || op->makesViews() || op->mayWrite(*node) ||
      node->outputs().size() != 1 || !isTensor(node->output()) ||
      node->inputs().size() != op->schema().arguments().size()) {
    return false;
  }
  for (const Value* v : node->inputs()) {
    if (v->type()->kind() == TypeKind::List) return false;
  }
  const Rule& rule = ruleOf(*op);
  if (rule.kind() == Rule::Kind::None) return true;
  if (rule.kind() != Rule::Kind::Formula || !rule.hasGradient(0)) return false;
  const uint64_t covered = coveredInputs(rule, node);
  return covered != 0 && gradientsIn(rule.gradients(covered)) != nullptr;
}

// The sizes that the body's values have in one call: those of pointwise results.
using Sizes = std::unordered_map<const Value*, DimVector>;

std::optional<DimVector> broadcast(const DimVector& a, const DimVector& b) {
  const DimVector& longer = a.size() >= b.size() ? a : b;
  const DimVector& shorter = a.size() >= b.size() ? b : a;
  DimVector out = longer;
  const size_t more = longer.size() - shorter.size();
  for (size_t d = 0; d < shorter.size(); ++d) {
    if (shorter[d] == out[more + d]) continue;
    if (out[more + d] != 1 && shorter[d] != 1) return std::nullopt;
    if (out[more + d] == 1) out[more + d] = shorter[d];
  }
  return out;
}

// What a backward function is made from.
struct Recipe;

// One backward function. Thread-safe.
struct Backward {
  std::shared_ptr<CompilationUnit> unit;
  GraphFunction* function = nullptr;
  struct Parameter {
    // Sizes: a tensor that has those of an argument. The argument itself may be gone or written to.
    enum class Kind { Argument, Result, Gradient, Sizes } kind;
    size_t index;
  };
  std::vector<Parameter> parameters;
  std::vector<size_t> arguments;      // whose gradients it returns, as a tuple
  std::vector<bool> results_need_it;  // which results come from arguments that do
  std::shared_ptr<const Recipe> recipe;
  SavedOfGraph::Passage passage;
  // The uses of the parameters of the function for walks over all.
  std::shared_ptr<const SavedUses> uses;

  // The function for a walk that brings gradients of some results alone, or wants those of some
  // arguments alone. It reads no more than this one. Zeros for the other results would be wrong:
  // times infinity they are NaN, and their gradients would seem to depend on the arguments.
  std::shared_ptr<const Backward> with(Ends walk) const;

 private:
  mutable std::mutex mutex_;
  mutable std::unordered_map<Ends, std::shared_ptr<const Backward>, HashOfEnds> for_some_;
};

size_t savedTensors(const Backward& backward) {
  const Graph& graph = *backward.function->graph();
  size_t count = 0;
  for (size_t i = 0; i < backward.parameters.size(); ++i) {
    using Kind = Backward::Parameter::Kind;
    const Kind kind = backward.parameters[i].kind;
    const bool saved = kind == Kind::Argument || kind == Kind::Result;
    count += saved && isTensor(graph.inputs()[i]);
  }
  return count;
}

// Where the inputs of each node stand in a list of those of all nodes.
using InputNumbers = std::unordered_map<const wick::Node*, size_t>;

struct Recipe {
  std::shared_ptr<const Graph> body;
  std::shared_ptr<const InputNumbers> numbers;
  uint64_t mask;  // bit i: argument i needs a gradient
  // Of each node's input, whether its gradient is summed to its sizes; empty when none is.
  std::vector<bool> sums;
  bool keeps_results;
  std::shared_ptr<const GraphOperators> operators;  // of the body
  std::unordered_set<const Value*> needed;          // values through which gradients flow

  Ends all() const { return {~uint64_t{0}, mask}; }
};

Recipe recipeOf(std::shared_ptr<const Graph> body, std::shared_ptr<const InputNumbers> numbers,
                uint64_t mask, std::vector<bool> sums) {
  Recipe made{std::move(body), std::move(numbers), mask, std::move(sums), false, nullptr, {}};
  for (size_t i = 0; i < made.body->inputs().size() && i < 64; ++i) {
    if (mask >> i & 1) made.needed.insert(made.body->inputs()[i]);
  }
  const auto needs = [&](const Value* v) { return made.needed.count(v) != 0; };
  for (const wick::Node* node : made.body->nodes()) {
    const Operator* op = node->maybeOperator();
    if (op && ruleOf(*op).kind() == Rule::Kind::Formula &&
        std::ranges::any_of(node->inputs(), needs)) {
      made.needed.insert(node->output());
    }
  }
  const std::vector<const Value*> results(made.body->outputs().begin(), made.body->outputs().end());
  made.operators = std::make_shared<const GraphOperators>(*made.body, results, needs);
  return made;
}

class BackwardBuilder {
 public:
  BackwardBuilder(std::shared_ptr<const Recipe> recipe, Ends walk)
      : recipe_(std::move(recipe)),
        body_(*recipe_->body),
        numbers_(*recipe_->numbers),
        sums_(recipe_->sums),
        walk_(walk),
        leading_(recipe_->operators->valuesLeadingTo(walk.arguments)),
        graph_(std::make_shared<Graph>()) {
    using Kind = Backward::Parameter::Kind;
    const Graph& body = body_;
    for (size_t i = 0; i < body.inputs().size(); ++i) {
      inside_[body.inputs()[i]] = parameter(Kind::Argument, i, body.inputs()[i]->type());
    }
    for (size_t i = 0; i < body.inputs().size(); ++i) {
      Value* v = body.inputs()[i];
      sized_[v] = isTensor(v) ? parameter(Kind::Sizes, i, v->type()) : inside_.at(v);
    }
    for (std::unordered_map<Value*, Value*>* values : {&inside_, &sized_}) {
      for (const wick::Node* node : body.nodes()) {
        wick::Node* copy = graph_->block()->appendNode(graph_->createClone(node, *values));
        for (size_t i = 0; i < node->outputs().size(); ++i) {
          (*values)[node->output(i)] = copy->output(i);
        }
      }
    }
    if (!recipe_->keeps_results) return;
    for (size_t i = 0; i < body.outputs().size(); ++i) {
      inside_[body.outputs()[i]] = parameter(Kind::Result, i, types::Tensor());
    }
  }

  // Null where a formula does not allow it. Without a function where no argument has a gradient.
  std::shared_ptr<Backward> build() {
    made_->recipe = recipe_;
    if (body_.outputs().size() > 64) return nullptr;
    for (size_t i = 0; i < body_.outputs().size(); ++i) {
      const Value* output = body_.outputs()[i];
      made_->results_need_it.push_back(needs(output));
      Value* gradient = parameter(Backward::Parameter::Kind::Gradient, i, types::Tensor());
      if (!needs(output) || (walk_.results >> i & 1) == 0) continue;
      accumulate(output, gradient);
    }
    made_->passage.passed = recipe_->operators->passed(walk_);
    std::vector<const wick::Node*> nodes(body_.nodes().begin(), body_.nodes().end());
    for (size_t n = nodes.size(); n-- > 0;) {
      if (!differentiate(nodes[n])) return nullptr;
    }
    std::vector<Value*> results;
    for (size_t i = 0; i < body_.inputs().size() && i < 64; ++i) {
      const auto found = gradients_.find(body_.inputs()[i]);
      if ((walk_.arguments >> i & 1) == 0 || found == gradients_.end()) continue;
      made_->arguments.push_back(i);
      results.push_back(found->second);
    }
    if (results.empty()) return std::move(made_);
    graph_->registerOutput(graph_->insertNode(graph_->createTuple(results))->output());
    withoutComplexNumbers(*graph_);
    eliminateDeadCode(*graph_);
    for (size_t i = graph_->inputs().size(); i-- > 0;) {
      if (!graph_->inputs()[i]->uses().empty()) continue;
      graph_->block()->eraseInput(i);
      made_->parameters.erase(made_->parameters.begin() + static_cast<ptrdiff_t>(i));
    }
    made_->unit = std::make_shared<CompilationUnit>();
    made_->function = made_->unit->createFunction("__torch__.backward", graph_);
    return std::move(made_);
  }

 private:
  Value* parameter(Backward::Parameter::Kind kind, size_t index, TypePtr type) {
    made_->parameters.push_back({kind, index});
    return graph_->block()->addInput(std::move(type));
  }

  bool needs(const Value* v) const { return recipe_->needed.count(v) != 0; }

  Value* insert(const char* kind, std::initializer_list<Value*> inputs, TypePtr type) {
    wick::Node* node = graph_->insertNode(graph_->create(Symbol::aten(kind), inputs));
    node->output()->setType(std::move(type));
    return node->output();
  }
  void accumulate(const Value* of, Value* gradient) {
    accumulateGradient(*graph_, gradients_[of], gradient);
  }
  Value* sizeOf(Value* tensor) {
    return insert("size", {tensor}, std::make_shared<const ListType>(types::Int()));
  }

  // Adds the gradients of the node's inputs; some of these need them.
  bool differentiate(const wick::Node* node) {
    const auto found = gradients_.find(node->outputs().empty() ? nullptr : node->output());
    if (found == gradients_.end()) return true;
    const Rule& rule = ruleOf(*node->maybeOperator());
    uint64_t wanted = 0;
    for (size_t i = 0; i < node->inputs().size() && i < 64; ++i) {
      if (isTensor(node->input(i)) && leading_.count(node->input(i))) wanted |= uint64_t{1} << i;
    }
    if ((wanted & ~coveredInputs(rule, node)) != 0) return false;
    if (wanted == 0) return true;
    const GradientFunction& gradients = rule.gradients(wanted);
    const wick::Node* tuple = gradientsIn(gradients);
    if (!tuple) return false;
    std::vector<Value*> arguments;
    for (const Source& source : gradients.sources) {
      const bool sizes = source.part == Source::Part::Size;
      const std::unordered_map<Value*, Value*>& values = sizes ? sized_ : inside_;
      Value* value = found->second;
      if (source.kind == Source::Kind::Argument) value = values.at(node->input(source.index));
      if (source.kind == Source::Kind::Result) value = values.at(node->output());
      arguments.push_back(sizes ? sizeOf(value) : value);
    }
    const std::vector<Value*> results =
        inlineGraph(*graph_, *gradients.function->graph(), arguments);
    const wick::Node* made = results[0]->node();
    for (size_t k = 0; k < gradients.arguments.size(); ++k) {
      const Value* input = node->input(gradients.arguments[k]);
      Value* gradient = made->input(k);
      if (!sums_.empty() && sums_[numbers_.at(node) + gradients.arguments[k]]) {
        Value* size = sizeOf(sized_.at(node->input(gradients.arguments[k])));
        gradient = insert("sum_to_size", {gradient, size}, types::Tensor());
      }
      accumulate(input, gradient);
    }
    return true;
  }

  const std::shared_ptr<const Recipe> recipe_;
  const Graph& body_;
  const InputNumbers& numbers_;
  const std::vector<bool>& sums_;
  const Ends walk_;
  const std::unordered_set<const Value*> leading_;  // values whose gradients are wanted
  std::shared_ptr<Graph> graph_;
  std::shared_ptr<Backward> made_ = std::make_shared<Backward>();
  std::unordered_map<Value*, Value*> inside_;
  std::unordered_map<Value*, Value*> sized_;  // values with the sizes, from sizes alone
  std::unordered_map<const Value*, Value*> gradients_;
};

std::shared_ptr<const Backward> Backward::with(Ends walk) const {
  constexpr size_t kMost = 32;
  std::lock_guard lock(mutex_);
  if (const auto known = for_some_.find(walk); known != for_some_.end()) return known->second;
  const std::shared_ptr<Backward> made = BackwardBuilder(recipe, walk).build();
  WICK_ASSERT(made, "the gradient of a graph that has one for all of its results");
  made->passage.kept = uses->keptBy(made->passage.passed);
  if (for_some_.size() < kMost) for_some_.emplace(walk, made);
  return made;
}

// The values that the function for all reads, and those that they would be computed from.
std::shared_ptr<const SavedUses> usesOf(const Backward& backward) {
  const Graph& body = *backward.recipe->body;
  const bool keeps_results = backward.recipe->keeps_results;
  std::vector<const Value*> values;
  for (const auto& p : backward.parameters) {
    using Kind = Backward::Parameter::Kind;
    values.push_back(p.kind == Kind::Argument ? body.inputs()[p.index]
                     : p.kind == Kind::Result ? body.outputs()[p.index]
                                              : nullptr);
  }
  const std::unordered_set<const Value*> results(body.outputs().begin(), body.outputs().end());
  const auto inputs = [=](const Value* v) {
    std::vector<const Value*> from;
    if (keeps_results && results.count(v) != 0) return from;
    from.assign(v->node()->inputs().begin(), v->node()->inputs().end());
    return from;
  };
  return std::make_shared<const SavedUses>(*backward.recipe->operators, std::move(values), inputs,
                                           [](const Value* v) { return v; });
}

// A call on the tape.
class DifferentiableGraphNode : public GraphNode {
 public:
  DifferentiableGraphNode(std::shared_ptr<const Backward> backward, const IValue* arguments)
      : backward_(std::move(backward)), saved_(backward_->parameters.size()) {
    std::vector<Edge> edges;
    for (const size_t i : backward_->arguments)
      edges.push_back(gradientEdge(arguments[i].toTensor()));
    setNext(std::move(edges));
    for (size_t p = 0; p < saved_.size(); ++p) {
      const auto& [kind, index] = backward_->parameters[p];
      if (kind == Backward::Parameter::Kind::Argument) {
        saved_.set(p, SavedValue::argument(arguments[index]));
      } else if (kind == Backward::Parameter::Kind::Sizes) {
        sizes_.emplace_back(index, Shape(arguments[index].toTensor()));
      }
    }
  }

  void saveResults(const IValue* results) {
    for (size_t p = 0; p < saved_.size(); ++p) {
      const auto& [kind, index] = backward_->parameters[p];
      if (kind != Backward::Parameter::Kind::Result) continue;
      // A value that needs no gradient must not look as if it did.
      saved_.set(p, backward_->results_need_it[index]
                        ? SavedValue::result(results[index], static_cast<uint32_t>(index))
                        : SavedValue::argument(results[index]));
    }
  }

  std::string name() const override { return "DifferentiableGraphBackward"; }

  std::vector<bool> resultsLeadingTo(const std::vector<bool>& wanted) const override {
    const uint64_t leading = backward_->recipe->operators->resultsLeadingTo(bitsOf(wanted));
    std::vector<bool> results(shapes().size());
    for (size_t i = 0; i < results.size(); ++i) results[i] = (leading >> i & 1) != 0;
    return results;
  }

  std::vector<Tensor> applyFor(const std::vector<Tensor>& gradients, Wanted wanted,
                               bool last) override {
    Ends walk{0, wanted ? bitsOf(*wanted) : backward_->recipe->mask};
    uint64_t needed = 0;
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (!backward_->results_need_it[i]) continue;
      needed |= uint64_t{1} << i;
      walk.results |= static_cast<uint64_t>(gradients[i].defined()) << i;
    }
    const bool all = walk == Ends{needed, backward_->recipe->mask};
    const std::shared_ptr<const Backward> backward =
        all ? backward_ : backward_->with(backward_->recipe->operators->joined(walk));
    // Undefined, as on the tape, where nothing depended on any result of the argument.
    std::vector<Tensor> out(backward_->arguments.size());
    if (!backward->function) return out;
    std::vector<IValue> arguments;
    saved_.read(*this, *backward_->uses, backward->passage, last, [&](const auto& saved) {
      for (const Backward::Parameter& p : backward->parameters) {
        using Kind = Backward::Parameter::Kind;
        arguments.push_back(p.kind == Kind::Gradient ? IValue(gradients.at(p.index))
                            : p.kind == Kind::Sizes  ? IValue(sizedAs(p.index))
                                                     : saved(placeOf(p)));
      }
    });
    const IValue found = runFunction(*backward->function, std::move(arguments));
    for (size_t k = 0; k < backward->arguments.size(); ++k) {
      const auto at = std::ranges::find(backward_->arguments, backward->arguments[k]);
      out[static_cast<size_t>(at - backward_->arguments.begin())] =
          found.elements().at(k).toTensor();
    }
    return out;
  }

 private:
  uint64_t bitsOf(const std::vector<bool>& edges) const {
    uint64_t bits = 0;
    for (size_t k = 0; k < edges.size(); ++k) {
      if (edges[k]) bits |= uint64_t{1} << backward_->arguments[k];
    }
    return bits;
  }
  // Among what is saved.
  size_t placeOf(const Backward::Parameter& parameter) const {
    size_t p = 0;
    while (backward_->parameters[p].kind != parameter.kind ||
           backward_->parameters[p].index != parameter.index) {
      ++p;
    }
    return p;
  }
  // A tensor with the sizes of an argument.
  Tensor sizedAs(size_t argument) const {
    const auto found = std::ranges::find(sizes_, argument, &std::pair<size_t, Shape>::first);
    WICK_ASSERT(found != sizes_.end(), "sizes that were not kept");
    const Shape& shape = found->second;
    return Tensor::zeros({}, shape.dtype, shape.device)
        .asStrided(shape.sizes, DimVector(shape.sizes.size(), 0), 0);
  }

  const std::shared_ptr<const Backward> backward_;
  SavedOfGraph saved_;                           // as many as the function has parameters
  std::vector<std::pair<size_t, Shape>> sizes_;  // of arguments
};

class GraphDerivative : public SiteDerivative {
 public:
  explicit GraphDerivative(const wick::Node& graph)
      : body_(graph.subgraph(attr::Subgraph)), writes_(writesTo(graph)) {
    InputNumbers numbers;
    size_t count = 0;
    for (const wick::Node* node : body_->nodes()) {
      numbers[node] = count;
      count += node->inputs().size();
      has_tensors_ |= node->kind() == prim::Constant && isTensor(node->output());
    }
    numbers_ = std::make_shared<const InputNumbers>(std::move(numbers));
  }

  bool run(const IValue* arguments, size_t num_arguments, IValue* results, size_t num_results,
           const std::function<bool()>& forward) override {
    // Whoever looks for the operator that makes a NaN wants each by itself.
    if (detectsAnomaly()) return false;
    const std::optional<uint64_t> mask = argumentsWithGradients(arguments, num_arguments);
    std::vector<bool> sums;
    if (!mask || *mask == 0 || !findSums(arguments, num_arguments, sums)) return false;
    const std::shared_ptr<const Backward> backward = backwardFor(*mask, sums);
    if (!backward) return false;
    // Saved values are noted before the results may take the arguments' place.
    Ref<DifferentiableGraphNode> node = makeRef<DifferentiableGraphNode>(backward, arguments);
    if (!forward()) return false;
    for (size_t i = 0; i < num_results; ++i) {
      const Tensor t = results[i].toTensor();
      if (backward->results_need_it[i]) {
        setHistory(t, node);
      } else {
        node->addResult(t);
      }
    }
    node->saveResults(results);
    return true;
  }

 private:
  // Which gradients must be summed because an operator repeated its input. False for sizes that do
  // not fit each other.
  bool findSums(const IValue* arguments, size_t n, std::vector<bool>& sums) const {
    const IValue* first = nullptr;
    bool alike = !has_tensors_;
    for (size_t i = 0; i < n; ++i) {
      if (!arguments[i].isTensor()) continue;
      if (!first) first = &arguments[i];
      alike =
          alike && std::ranges::equal(first->toTensor().sizes(), arguments[i].toTensor().sizes());
    }
    if (alike) return true;
    Sizes sizes;
    for (size_t i = 0; i < n; ++i) {
      if (!arguments[i].isTensor()) continue;
      sizes[body_->inputs()[i]] = DimVector(arguments[i].toTensor().sizes());
    }
    for (const wick::Node* node : body_->nodes()) {
      if (node->kind() == prim::Constant) {
        if (isTensor(node->output())) {
          sizes[node->output()] = DimVector(constantOf(node->output())->toTensor().sizes());
        }
        continue;
      }
      DimVector all;
      for (const Value* v : node->inputs()) {
        if (!isTensor(v)) continue;
        const std::optional<DimVector> both = broadcast(all, sizes.at(v));
        if (!both) return false;
        all = *both;
      }
      for (const Value* v : node->inputs()) sums.push_back(isTensor(v) && sizes.at(v) != all);
      sizes[node->output()] = all;
    }
    return true;
  }

  std::shared_ptr<const Backward> backwardFor(uint64_t mask, const std::vector<bool>& sums) {
    constexpr size_t kMost = 16;
    std::lock_guard lock(mutex_);
    for (const Variant& v : variants_) {
      if (v.mask == mask && v.sums == sums) return v.backward;
    }
    if (variants_.size() == kMost) return nullptr;
    Recipe recipe = recipeOf(body_, numbers_, mask, sums);
    const auto make = [&](bool keeps_results) -> std::shared_ptr<Backward> {
      recipe.keeps_results = keeps_results;
      auto shared = std::make_shared<const Recipe>(recipe);
      std::shared_ptr<Backward> backward = BackwardBuilder(shared, shared->all()).build();
      if (!backward || !backward->function) return nullptr;
      backward->uses = usesOf(*backward);
      backward->passage.kept = backward->uses->keptBy(backward->passage.passed);
      return maySave(*backward) ? backward : nullptr;
    };
    std::shared_ptr<Backward> made = make(/*keeps_results=*/false);
    const std::shared_ptr<Backward> keeping = make(/*keeps_results=*/true);
    if (keeping && (!made || savedTensors(*keeping) < savedTensors(*made))) made = keeping;
    variants_.push_back({mask, sums, made});
    return variants_.back().backward;
  }

  bool mayBeWritten(const Value* v) const {
    const auto isSet = [](uint64_t bits, size_t i) { return i >= 64 || (bits >> i & 1) != 0; };
    if (!isTensor(v)) return false;
    if (v->node()->kind() == prim::Param) return isSet(writes_.arguments, v->offset());
    for (size_t i = 0; i < body_->outputs().size(); ++i) {
      if (body_->outputs()[i] == v && isSet(writes_.results, i)) return true;
    }
    return false;
  }

  // Whether walks raise when those on the tape do, because somebody wrote to what an operator keeps:
  // of what may be written to, a gradient reads what the tape would have kept for it, and all of that
  // is saved.
  bool maySave(const Backward& backward) const {
    const GraphOperators& operators = *backward.recipe->operators;
    const std::vector<OperatorSet> together = operators.alwaysPassedWith();
    std::unordered_map<const Value*, OperatorSet> keepers;
    for (size_t n = 0; n < operators.all().size(); ++n) {
      for (const Value* v : operators.all()[n].reads) {
        if (mayBeWritten(v)) keepers[v].insert(n);
      }
    }
    for (size_t p = 0; p < backward.parameters.size(); ++p) {
      using Kind = Backward::Parameter::Kind;
      const auto& [kind, index] = backward.parameters[p];
      if (kind != Kind::Argument && kind != Kind::Result) continue;
      const Value* v = kind == Kind::Argument ? body_->inputs()[index] : body_->outputs()[index];
      if (!mayBeWritten(v)) continue;
      const OperatorSet& kept = keepers[v];
      const OperatorSet& readers = backward.uses->readers(p);
      for (size_t n = 0; n < operators.all().size(); ++n) {
        if (readers.has(n) && !together[n].meets(kept)) return false;
      }
      keepers.erase(v);
    }
    return keepers.empty();
  }

  struct Variant {
    uint64_t mask;
    std::vector<bool> sums;
    std::shared_ptr<const Backward> backward;  // null when there is none
  };
  const std::shared_ptr<const Graph> body_;
  const RegionPlan::Writes writes_;
  std::shared_ptr<const InputNumbers> numbers_;
  bool has_tensors_ = false;  // constants of the body
  std::mutex mutex_;
  std::vector<Variant> variants_;
};

bool isPointwise(const wick::Node* node) {
  const Operator* op = node->maybeOperator();
  return node->kind() == prim::Constant || (op && op->record().scalar);
}

constexpr SiteDerivative::Factory kFactory{
    differentiable, joinsRegions,
    [](const wick::Node& graph) -> std::unique_ptr<SiteDerivative> {
      const std::shared_ptr<const Graph> body = graph.subgraph(attr::Subgraph);
      if (holdsLoop(*body)) return makeLoopDerivative(graph);
      if (!std::ranges::all_of(body->nodes(), isPointwise)) return makeRegionDerivative(graph);
      return std::make_unique<GraphDerivative>(graph);
    },
    [](const Tensor& t) { return isLeaf(t) && !hasHooks(t); }};
const bool installed = [] {
  SiteDerivative::setFactory(&kFactory);
  return true;
}();

}  // namespace

}  // namespace wick::autograd
