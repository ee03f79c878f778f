#include "autograd/region_plan.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <optional>
#include <unordered_set>

#include "autograd/formula_graph.h"
#include "core/error.h"
#include "passes/constant_propagation.h"
#include "passes/dead_code_elimination.h"
#include "passes/erase_shape_computations.h"
#include "passes/peephole.h"
#include "passes/propagate_types.h"

namespace wick::autograd {

namespace {

using Source = GradientFunction::Source;
using Sizes = std::vector<int64_t>;

bool isTensor(const Value* v) {
  return v->type()->kind() == TypeKind::Tensor;
}
bool isConstant(const Value* v) {
  return v->node()->kind() == prim::Constant;
}

std::unordered_set<Symbol> symbols(std::initializer_list<const char*> names) {
  std::unordered_set<Symbol> all;
  for (const char* name : names) all.insert(Symbol::aten(name));
  return all;
}

// Compute new tensors by sums and products over their arguments; none draws random numbers. Not
// here are batch normalization, which writes to its statistics, and group normalization, whose own
// kernels are faster on images than those of groups.
bool isReductionOrProduct(Symbol kind) {
  static const std::unordered_set<Symbol> kKinds = symbols({"sum",
                                                            "mean",
                                                            "var",
                                                            "std",
                                                            "logsumexp",
                                                            "softmax",
                                                            "log_softmax",
                                                            "layer_norm",
                                                            "linear",
                                                            "matmul",
                                                            "mm",
                                                            "bmm",
                                                            "addmm",
                                                            "baddbmm",
                                                            "mse_loss",
                                                            "l1_loss",
                                                            "smooth_l1_loss",
                                                            "huber_loss",
                                                            "binary_cross_entropy_with_logits",
                                                            "nll_loss_nd"});
  return kKinds.count(kind) != 0;
}

bool isViewNode(Symbol kind) {
  static const std::unordered_set<Symbol> kKinds =
      symbols({"view", "reshape", "transpose", "permute", "t", "unsqueeze", "squeeze", "flatten",
               "expand"});
  return kKinds.count(kind) != 0;
}

bool isPointwise(const wick::Node* node) {
  const Operator* op = node->maybeOperator();
  return op && op->record().scalar != nullptr;
}

// What backward computes again rather than have it saved.
bool isCheap(const wick::Node* node) {
  return node->kind() == prim::ListConstruct || isViewNode(node->kind()) || isPointwise(node);
}

std::optional<Sizes> knownSizes(const Value* v) {
  if (!isTensor(v)) return std::nullopt;
  const auto& facts = static_cast<const TensorType&>(*v->type()).facts();
  if (!facts.sizes || !facts.dtype) return std::nullopt;
  Sizes out;
  for (const auto& size : *facts.sizes) {
    if (!size || *size < 0) return std::nullopt;
    out.push_back(*size);
  }
  return out;
}

DType dtypeOf(const Value* v) {
  return *static_cast<const TensorType&>(*v->type()).facts().dtype;
}

int64_t numberOfElements(const Value* v) {
  const std::optional<Sizes> sizes = knownSizes(v);
  int64_t count = 1;
  for (const int64_t s : sizes.value_or(Sizes())) {
    if (s != 0 && count > (int64_t{1} << 40) / s) return int64_t{1} << 40;
    count *= s;
  }
  return count;
}

// Tensors that need gradients among the inputs of a node.
uint64_t wantedInputs(const wick::Node* node,
                      const std::unordered_map<const Value*, bool>& needed) {
  uint64_t wanted = 0;
  for (size_t i = 0; i < node->inputs().size() && i < 64; ++i) {
    if (isTensor(node->input(i)) && needed.count(node->input(i)) != 0) wanted |= uint64_t{1} << i;
  }
  return wanted;
}

// Capacities between the values of a graph, each as a pair of vertices: the least set of values
// that separates what is there from what is read.
class VertexCut {
 public:
  static constexpr int64_t kNever = int64_t{1} << 56;
  explicit VertexCut(size_t values) : edges_(2 * values + 2), values_(values) {}

  void cost(size_t value, int64_t cost) { connect(2 * value, 2 * value + 1, cost); }
  void isThere(size_t value) { connect(source(), 2 * value, kNever); }
  void isRead(size_t value) { connect(2 * value + 1, sink(), kNever); }
  void computes(size_t from, size_t to) { connect(2 * from + 1, 2 * to, kNever); }

  // False where nothing but values that must not be saved separates them.
  bool find(std::vector<size_t>& saved) {
    int64_t total = 0;
    while (const int64_t more = augment()) {
      total += more;
      if (total >= kNever) return false;
    }
    const std::vector<Step> reached = search();
    for (size_t v = 0; v < values_; ++v) {
      if (reached[2 * v].seen && !reached[2 * v + 1].seen) saved.push_back(v);
    }
    return true;
  }

 private:
  struct Edge {
    size_t to;
    int64_t capacity;
    size_t reverse;
  };
  struct Step {
    bool seen = false;
    size_t from = 0, edge = 0;
  };
  size_t source() const { return 2 * values_; }
  size_t sink() const { return 2 * values_ + 1; }
  void connect(size_t from, size_t to, int64_t capacity) {
    edges_[from].push_back({to, capacity, edges_[to].size()});
    edges_[to].push_back({from, 0, edges_[from].size() - 1});
  }
  std::vector<Step> search() const {
    std::vector<Step> steps(edges_.size());
    std::deque<size_t> pending{source()};
    steps[source()].seen = true;
    while (!pending.empty()) {
      const size_t at = pending.front();
      pending.pop_front();
      for (size_t e = 0; e < edges_[at].size(); ++e) {
        const Edge& edge = edges_[at][e];
        if (edge.capacity <= 0 || steps[edge.to].seen) continue;
        steps[edge.to] = {true, at, e};
        pending.push_back(edge.to);
      }
    }
    return steps;
  }
  int64_t augment() {
    const std::vector<Step> steps = search();
    if (!steps[sink()].seen) return 0;
    int64_t least = kNever;
    for (size_t at = sink(); at != source(); at = steps[at].from) {
      least = std::min(least, edges_[steps[at].from][steps[at].edge].capacity);
    }
    for (size_t at = sink(); at != source(); at = steps[at].from) {
      Edge& edge = edges_[steps[at].from][steps[at].edge];
      edge.capacity -= least;
      edges_[edge.to][edge.reverse].capacity += least;
    }
    return least;
  }
  std::vector<std::vector<Edge>> edges_;
  const size_t values_;
};

// The constant list of a type's sizes.
Value* constantSizes(Graph& graph, const Value* of) {
  const Sizes sizes = *knownSizes(of);
  return graph.insertConstant(IValue(makeIntList(sizes)),
                              std::make_shared<const ListType>(types::Int()));
}

Value* insertTensor(Graph& graph, const char* kind, std::initializer_list<Value*> inputs) {
  wick::Node* node = graph.insertNode(graph.create(Symbol::aten(kind), inputs));
  node->output()->setType(types::Tensor());
  return node->output();
}

// Gradients that have their argument's sizes need no sum, and sums over known dimensions are
// reductions that kernels compute beside others.
void simplifySums(Graph& graph) {
  static const Symbol kSumToSize = Symbol::aten("sum_to_size");
  std::vector<wick::Node*> nodes(graph.nodes().begin(), graph.nodes().end());
  for (wick::Node* node : nodes) {
    if (node->kind() != kSumToSize) continue;
    const std::optional<Sizes> from = knownSizes(node->input(0));
    const std::optional<IValue> list = constantOf(node->input(1));
    if (!from || !list) continue;
    Sizes to;
    for (const IValue& e : list->elements()) to.push_back(e.toInt());
    if (*from == to) {
      node->output()->replaceAllUsesWith(node->input(0));
      node->destroy();
      continue;
    }
    if (from->size() < to.size()) continue;
    const size_t more = from->size() - to.size();
    Sizes dims;
    for (size_t d = 0; d < from->size(); ++d) {
      if (d < more || (to[d - more] == 1 && (*from)[d] != 1)) {
        dims.push_back(static_cast<int64_t>(d));
      }
    }
    InsertPointGuard guard(node);
    const bool keeps = dims.size() != more;
    Value* sum =
        insertTensor(graph, "sum",
                     {node->input(0),
                      graph.insertConstant(IValue(makeIntList(dims)),
                                           std::make_shared<const ListType>(types::Int())),
                      graph.insertConstant(IValue(keeps)), graph.insertConstant(IValue())});
    if (keeps && more > 0) sum = insertTensor(graph, "reshape", {sum, node->input(1)});
    node->output()->replaceAllUsesWith(sum);
    node->destroy();
  }
}

}  // namespace

bool joinsRegions(const wick::Node* node) {
  const Operator* op = node->maybeOperator();
  if (!op || op->form() != Operator::Form::Base || op->mayWrite(*node) ||
      node->outputs().size() != 1 || !isTensor(node->output()) ||
      node->inputs().size() != op->schema().arguments().size()) {
    return false;
  }
  if (!isReductionOrProduct(node->kind()) && !isViewNode(node->kind())) return false;
  for (size_t i = 0; i < node->inputs().size(); ++i) {
    const Value* v = node->input(i);
    const bool list = v->type()->kind() == TypeKind::List;
    if (list && v->type()->contained()[0]->kind() == TypeKind::Tensor) return false;
    // What may be None at times, and results of another dtype than the arguments.
    if (v->type()->kind() == TypeKind::Optional) return false;
    if (op->schema().arguments()[i].name == "dtype" && v->type()->kind() != TypeKind::None) {
      return false;
    }
  }
  const Rule& rule = ruleOf(*op);
  if (rule.kind() != Rule::Kind::Formula || !rule.hasGradient(0)) return false;
  const uint64_t covered = coveredInputs(rule, node);
  return covered != 0 && gradientsIn(rule.gradients(covered)) != nullptr;
}

// Builds one backward function.
class RegionBackward {
 public:
  RegionBackward(const RegionPlan& plan, uint64_t defined)
      : plan_(plan), defined_(defined), graph_(std::make_shared<Graph>()) {
    for (size_t i = 0; i < plan.saved_.size(); ++i) {
      const Value* v = plan.saved_values_[i];
      inside_[v] = parameter({Parameter::Kind::Saved, i}, v->type());
    }
  }

  // Null where a formula does not fit, or reads what can be had no more.
  std::unique_ptr<RegionPlan::Backward> build() {
    for (size_t i = 0; i < plan_.forward_results_.size(); ++i) {
      const Value* result = plan_.forward_results_[i];
      if ((defined_ >> i & 1) == 0 || !plan_.results_need_it_[i]) continue;
      accumulate(result, parameter({Parameter::Kind::Gradient, i}, result->type()));
    }
    std::vector<const wick::Node*> nodes(plan_.body_->nodes().begin(), plan_.body_->nodes().end());
    for (size_t n = nodes.size(); n-- > 0;) {
      if (!differentiate(nodes[n])) return nullptr;
    }
    std::vector<Value*> results;
    for (size_t k = 0; k < plan_.arguments_.size(); ++k) {
      const auto found = gradients_.find(plan_.body_->inputs()[plan_.arguments_[k]]);
      if (found == gradients_.end()) continue;
      made_->found.push_back(k);
      results.push_back(found->second);
    }
    if (results.empty()) return std::move(made_);
    graph_->registerOutput(graph_->insertNode(graph_->createTuple(results))->output());
    simplify();
    made_->unit = std::make_shared<CompilationUnit>();
    made_->function = made_->unit->createFunction("__torch__.backward", graph_);
    return std::move(made_);
  }

 private:
  using Parameter = RegionPlan::Backward::Parameter;

  Value* parameter(Parameter which, TypePtr type) {
    made_->parameters.push_back(which);
    return graph_->block()->addInput(std::move(type));
  }

  void simplify() {
    withoutComplexNumbers(*graph_);
    for (int round = 0; round < 2; ++round) {
      eliminateDeadCode(*graph_);
      propagateConstants(*graph_);
      eraseShapeComputations(*graph_);
      simplifyPeepholes(*graph_);
      propagateTypes(*graph_);
      simplifySums(*graph_);
    }
    propagateConstants(*graph_);
    eliminateDeadCode(*graph_);
    for (size_t i = graph_->inputs().size(); i-- > 0;) {
      Value* input = graph_->inputs()[i];
      if (!input->uses().empty()) {
        // The function's own executor finds out.
        if (isTensor(input)) input->setType(types::Tensor());
        continue;
      }
      graph_->block()->eraseInput(i);
      made_->parameters.erase(made_->parameters.begin() + static_cast<ptrdiff_t>(i));
    }
  }

  void accumulate(const Value* of, Value* gradient) {
    Value*& sum = gradients_[of];
    if (!sum) {
      sum = gradient;
    } else {
      Value* one = graph_->insertConstant(IValue(int64_t{1}));
      sum = insertTensor(*graph_, "add", {sum, gradient, one});
    }
  }

  // A forward value, computed again where it is not saved; null when it cannot be.
  Value* valueOf(Value* v) {
    if (const auto found = inside_.find(v); found != inside_.end()) return found->second;
    const wick::Node* node = v->node();
    if (!isConstant(v) && !isCheap(node)) return nullptr;
    std::unordered_map<Value*, Value*> map;
    for (Value* input : node->inputs()) {
      Value* made = valueOf(input);
      if (!made) return nullptr;
      map[input] = made;
    }
    wick::Node* copy = graph_->insertNode(graph_->createClone(node, map));
    return inside_[v] = copy->output();
  }

  Value* argumentFor(const Source& source, const wick::Node* node, Value* gradient) {
    if (source.kind == Source::Kind::Gradient) {
      return source.part == Source::Part::Size ? constantSizes(*graph_, node->output()) : gradient;
    }
    Value* v = source.kind == Source::Kind::Argument ? node->input(source.index) : node->output();
    return source.part == Source::Part::Size ? constantSizes(*graph_, v) : valueOf(v);
  }

  // Adds the gradients of the node's inputs that need them.
  bool differentiate(const wick::Node* node) {
    if (node->outputs().size() != 1) return node->outputs().empty();
    const auto found = gradients_.find(node->output());
    if (found == gradients_.end()) return true;
    const Rule& rule = ruleOf(*node->maybeOperator());
    const uint64_t wanted = wantedInputs(node, plan_.needed_);
    if (wanted == 0) return true;
    const GradientFunction& gradients = rule.gradients(wanted);
    const RangeGuard range(graph_.get(), node->range());
    std::vector<Value*> arguments;
    for (const Source& source : gradients.sources) {
      arguments.push_back(argumentFor(source, node, found->second));
      if (!arguments.back()) return false;
    }
    const std::vector<Value*> results =
        inlineGraph(*graph_, *gradients.function->graph(), arguments);
    const wick::Node* made = results[0]->node();
    for (size_t k = 0; k < gradients.arguments.size(); ++k) {
      const Value* input = node->input(gradients.arguments[k]);
      Value* gradient = made->input(k);
      if (!isPointwise(node) || *knownSizes(input) != *knownSizes(node->output())) {
        gradient = insertTensor(*graph_, "sum_to_size", {gradient, constantSizes(*graph_, input)});
      }
      accumulate(input, gradient);
    }
    return true;
  }

  const RegionPlan& plan_;
  const uint64_t defined_;
  std::shared_ptr<Graph> graph_;
  std::unique_ptr<RegionPlan::Backward> made_ = std::make_unique<RegionPlan::Backward>();
  std::unordered_map<const Value*, Value*> inside_;
  std::unordered_map<const Value*, Value*> gradients_;
};

std::shared_ptr<const RegionPlan> RegionPlan::make(const Graph& body,
                                                   const std::vector<Input>& inputs, uint64_t mask,
                                                   uint64_t leaves) {
  std::shared_ptr<RegionPlan> plan(new RegionPlan);
  plan->body_ = body.copy();
  for (size_t i = 0; i < inputs.size(); ++i) {
    Value* input = plan->body_->inputs()[i];
    if (inputs[i].constant) {
      wick::Node* constant = plan->body_->createConstant(*inputs[i].constant);
      input->replaceAllUsesWith(plan->body_->block()->prependNode(constant)->output());
    } else if (inputs[i].dtype) {
      TensorType::Facts facts;
      facts.dtype = inputs[i].dtype;
      facts.device = Device();
      facts.dim = inputs[i].sizes.size();
      facts.sizes.emplace(inputs[i].sizes.begin(), inputs[i].sizes.end());
      input->setType(TensorType::create(std::move(facts)));
    }
  }
  propagateTypes(*plan->body_);
  if (!plan->findNeeds(mask) || !plan->findSaved(leaves)) return nullptr;
  plan->buildForward();
  uint64_t all = 0;
  for (size_t i = 0; i < plan->numResults(); ++i) all |= uint64_t{1} << i;
  // Formulas that do not fit are found here.
  auto first = plan->build(all);
  if (!first) return nullptr;
  plan->backward_[all] = std::move(first);
  return plan;
}

bool RegionPlan::findNeeds(uint64_t mask) {
  for (size_t i = 0; i < body_->inputs().size() && i < 64; ++i) {
    const Value* input = body_->inputs()[i];
    if (isTensor(input) && !knownSizes(input)) return false;
    if ((mask >> i & 1) == 0) continue;
    needed_[input] = true;
    arguments_.push_back(i);
  }
  std::optional<DType> dtype;
  for (const wick::Node* node : body_->nodes()) {
    for (const Value* v : node->outputs()) {
      if (isTensor(v) && !knownSizes(v)) return false;
    }
    const Operator* op = node->maybeOperator();
    if (!op || ruleOf(*op).kind() != Rule::Kind::Formula) continue;
    const uint64_t wanted = wantedInputs(node, needed_);
    if (wanted == 0) continue;
    if ((wanted & ~coveredInputs(ruleOf(*op), node)) != 0) return false;
    // Gradients have their arguments' dtype all along.
    if (!isFloating(dtypeOf(node->output()))) return false;
    if (dtype && *dtype != dtypeOf(node->output())) return false;
    dtype = dtypeOf(node->output());
    needed_[node->output()] = true;
  }
  return body_->outputs().size() < 32;
}

// What formulas read, and the least that it can be computed from.
bool RegionPlan::findSaved(uint64_t leaves) {
  std::vector<const Value*> values;
  std::unordered_map<const Value*, size_t> numbers;
  const auto add = [&](const Value* v) {
    numbers[v] = values.size();
    values.push_back(v);
  };
  for (const Value* v : body_->inputs()) add(v);
  for (const wick::Node* node : body_->nodes()) {
    if (node->kind() == prim::Constant) continue;
    for (const Value* v : node->outputs()) add(v);
  }
  std::unordered_set<const Value*> reads, on_tape;
  for (const wick::Node* node : body_->nodes()) {
    if (node->outputs().size() != 1 || needed_.count(node->output()) == 0) continue;
    const GradientFunction& gradients =
        ruleOf(*node->maybeOperator()).gradients(wantedInputs(node, needed_));
    if (!gradientsIn(gradients)) return false;
    for (const Source& source : gradients.sources) {
      if (source.kind == Source::Kind::Gradient || source.part != Source::Part::Value) continue;
      const Value* v =
          source.kind == Source::Kind::Argument ? node->input(source.index) : node->output();
      if (!isConstant(v)) reads.insert(v);
      // The tape would save it, and with it the memory that it is a view of.
      for (; on_tape.insert(v).second && isViewNode(v->node()->kind());) v = v->node()->input(0);
    }
  }
  VertexCut cut(values.size());
  std::unordered_map<const Value*, size_t> results;
  for (size_t i = 0; i < body_->outputs().size(); ++i) results.try_emplace(body_->outputs()[i], i);
  for (size_t v = 0; v < values.size(); ++v) {
    const Value* value = values[v];
    const wick::Node* node = value->node();
    const int64_t elements = isTensor(value) ? numberOfElements(value) : 0;
    if (node->kind() == prim::Param) {
      const size_t i = value->offset();
      const bool leaf = i < 64 && (leaves >> i & 1) != 0;
      // A write to what the tape would not have saved must not be an error.
      const bool may_be_saved = !isTensor(value) || on_tape.count(value) != 0;
      cut.cost(v, may_be_saved ? (leaf ? 1 : elements + 1) : VertexCut::kNever);
      cut.isThere(v);
    } else {
      // Others keep results too, and may write to them; the rest is stored for this alone.
      const bool result = results.count(value) != 0;
      const bool may_be_saved = !result || on_tape.count(value) != 0;
      cut.cost(v, may_be_saved ? (result ? 1 : 2) * elements + 1 : VertexCut::kNever);
      if (isCheap(node)) {
        for (const Value* input : node->inputs()) {
          if (!isConstant(input)) cut.computes(numbers.at(input), v);
        }
      } else {
        cut.isThere(v);
      }
    }
    if (reads.count(value) != 0) cut.isRead(v);
  }
  std::vector<size_t> found;
  if (!cut.find(found)) return false;
  forward_results_.assign(body_->outputs().begin(), body_->outputs().end());
  for (const size_t v : found) {
    const Value* value = values[v];
    saved_values_.push_back(value);
    if (value->node()->kind() == prim::Param) {
      saved_.push_back({Saved::Kind::Argument, value->offset()});
    } else if (const auto result = results.find(value); result != results.end()) {
      saved_.push_back({Saved::Kind::Result, result->second});
    } else {
      saved_.push_back({Saved::Kind::Result, forward_results_.size()});
      forward_results_.push_back(value);
    }
  }
  for (const Value* v : forward_results_) results_need_it_.push_back(needed_.count(v) != 0);
  return forward_results_.size() <= 64;
}

void RegionPlan::buildForward() {
  auto graph = std::make_shared<Graph>();
  std::unordered_map<Value*, Value*> inside;
  for (Value* v : body_->inputs()) {
    inside[v] = graph->block()->addInput(isTensor(v) ? types::Tensor() : v->type());
  }
  for (const wick::Node* node : body_->nodes()) {
    wick::Node* copy = graph->block()->appendNode(graph->createClone(node, inside));
    for (size_t i = 0; i < node->outputs().size(); ++i) {
      inside[node->output(i)] = copy->output(i);
    }
  }
  std::vector<Value*> results;
  for (const Value* v : forward_results_) results.push_back(inside.at(const_cast<Value*>(v)));
  graph->registerOutput(graph->insertNode(graph->createTuple(results))->output());
  unit_ = std::make_shared<CompilationUnit>();
  forward_ = unit_->createFunction("__torch__.forward", std::move(graph));
}

std::unique_ptr<RegionPlan::Backward> RegionPlan::build(uint64_t defined) const {
  return RegionBackward(*this, defined).build();
}

const RegionPlan::Backward& RegionPlan::backward(uint64_t defined) const {
  std::lock_guard lock(mutex_);
  auto& made = backward_[defined];
  if (!made) made = build(defined);
  WICK_CHECK(made, "the gradient of a graph cannot be computed from what it saved");
  return *made;
}

}  // namespace wick::autograd
