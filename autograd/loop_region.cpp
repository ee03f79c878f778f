#include "autograd/loop_region.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <unordered_map>

#include "autograd/anomaly.h"
#include "autograd/gradients.h"
#include "autograd/region_derivative.h"
#include "autograd/region_plans.h"
#include "autograd/saved_uses.h"
#include "autograd/saved_value.h"
#include "autograd/tape.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "passes/fusion_groups.h"
#include "passes/node_traits.h"
#include "runtime/executor/graph_executor.h"

namespace wick::autograd {

namespace {

std::atomic<uint64_t> loops_as_graphs{0};

// What a plan for the body of a loop says of where values come from. Argument 0 of an iteration is
// its number; then come what is carried and what comes from outside.
class LoopPlan {
 public:
  LoopPlan(std::shared_ptr<const RegionPlan> plan, size_t carried)
      : plan_(std::move(plan)), carried_(carried), shown_(plan_->numForwardResults()) {
    for (size_t i = carried; i < plan_->numResults(); ++i) {
      const auto& same = plan_->sameAs(i);
      if (!same) {
        shown_[i] = true;
      } else if (!same->argument) {
        shown_[same->index] = true;
      } else if (const auto before = resultBefore(same->index)) {
        shown_[*before] = true;
      }
    }
    for (const RegionPlan::Saved& s : plan_->saved()) {
      const bool outside =
          s.kind == RegionPlan::Saved::Kind::Argument && s.index > 0 && !resultBefore(s.index);
      places_.push_back(outside ? outside_++ : inside_++);
      is_outside_.push_back(outside);
    }
    for (const RegionPlan::Number& n : plan_->numbers()) num_counted_ += !n.argument;
  }

  const RegionPlan& plan() const { return *plan_; }
  size_t carried() const { return carried_; }
  size_t numResults() const { return plan_->numForwardResults(); }
  // Which result of the iteration before an argument is; nullopt where it is the same in all.
  std::optional<size_t> resultBefore(size_t argument) const {
    if (argument == 0 || argument > carried_) return std::nullopt;
    const size_t k = argument - 1;
    const auto& same = plan_->sameAs(k);
    if (!same) return k;
    return same->argument ? std::nullopt : std::optional(same->index);
  }
  // Whether the program may find the result of an iteration that is not the last.
  bool isShown(size_t result) const { return shown_[result]; }

  // Saved values are kept once, or by iteration; and where.
  bool isOutside(size_t saved) const { return is_outside_[saved]; }
  size_t place(size_t saved) const { return places_[saved]; }
  size_t numOutside() const { return outside_; }
  size_t numInside() const { return inside_; }
  // Numbers that each iteration finds.
  size_t numCounted() const { return num_counted_; }

 private:
  const std::shared_ptr<const RegionPlan> plan_;
  const size_t carried_;
  std::vector<bool> shown_, is_outside_;
  std::vector<size_t> places_;
  size_t outside_ = 0, inside_ = 0, num_counted_ = 0;
};

// A call on the tape. Its results are those of the forward functions of all iterations, one
// iteration after the other, so that what is saved has derivatives of its own.
class LoopNode : public GraphNode {
 public:
  using Kind = RegionPlan::Saved::Kind;

  // `arguments`: of the first iteration.
  LoopNode(std::shared_ptr<const LoopPlan> plan, const std::vector<IValue>& arguments)
      : loop_(std::move(plan)) {
    const RegionPlan& plan_of_body = loop_->plan();
    std::vector<Edge> edges;
    for (const size_t i : plan_of_body.arguments()) {
      edges.push_back(gradientEdge(arguments[i].toTensor()));
    }
    setNext(std::move(edges));
    for (const RegionPlan::Number& n : plan_of_body.numbers()) {
      sizes_.push_back(n.argument ? arguments[n.index].toTensor().size(static_cast<int64_t>(n.dim))
                                  : 0);
    }
    outside_.resize(loop_->numOutside());
    for (size_t s = 0; s < plan_of_body.saved().size(); ++s) {
      if (!loop_->isOutside(s)) continue;
      outside_[loop_->place(s)] = SavedValue::argument(arguments[plan_of_body.saved()[s].index]);
    }
    noteHeld(outside_.capacity() * sizeof(SavedValue) + sizes_.capacity() * sizeof(int64_t));
  }

  // Before the iteration runs: its results may take the memory of arguments that nobody keeps.
  void saveArguments(const std::vector<IValue>& arguments) {
    const size_t first = inside_.size();
    inside_.resize(first + loop_->numInside());
    noteHeld(loop_->numInside() * sizeof(SavedValue));
    for (size_t s = 0; s < loop_->plan().saved().size(); ++s) {
      const auto& [kind, index] = loop_->plan().saved()[s];
      if (kind != Kind::Argument || loop_->isOutside(s)) continue;
      SavedValue& at = inside_[first + loop_->place(s)];
      const std::optional<size_t> before = loop_->resultBefore(index);
      if (before && iterations_ > 0 && loop_->plan().needsGradient(*before)) {
        at = SavedValue::result(arguments[index], resultNumber(iterations_ - 1, *before));
      } else {
        at = SavedValue::argument(arguments[index]);
      }
    }
  }

  // `shows`: whether the program may find results that are carried, too.
  void addIteration(const std::vector<IValue>& all, bool shows) {
    const RegionPlan& plan = loop_->plan();
    const Ref<LoopNode> self(this);
    for (size_t r = 0; r < plan.numForwardResults(); ++r) {
      if (!all[r].isTensor() || plan.sameAs(r)) {
        addAbsentResult();
        noteHeld(sizeof(Shape));
      } else if (plan.needsGradient(r) && (loop_->isShown(r) || (shows && r < loop_->carried()))) {
        setHistory(all[r].toTensor(), self);
      } else {
        addResult(all[r].toTensor());
      }
    }
    const size_t first = iterations_ * loop_->numInside();
    for (size_t s = 0; s < plan.saved().size(); ++s) {
      const auto& [kind, index] = plan.saved()[s];
      if (kind != Kind::Result) continue;
      SavedValue& at = inside_[first + loop_->place(s)];
      if (plan.needsGradient(index)) {
        at = SavedValue::result(all[index], resultNumber(iterations_, index));
      } else {
        at = SavedValue::argument(all[index]);
      }
    }
    for (const RegionPlan::Number& n : plan.numbers()) {
      if (!n.argument) counted_.push_back(all[n.index].toInt());
    }
    ++iterations_;
  }

  std::string name() const override { return "DifferentiableGraphBackward"; }

  std::vector<bool> resultsLeadingTo(const std::vector<bool>& wanted) const override {
    std::vector<bool> results(shapes().size());
    const std::vector<uint64_t> leading = leadingResults(bitsOf(wanted));
    for (size_t i = 0; i < results.size(); ++i) {
      results[i] = (leading[i / loop_->numResults()] >> i % loop_->numResults() & 1) != 0;
    }
    return results;
  }

  std::vector<Tensor> applyFor(const std::vector<Tensor>& gradients, Wanted wanted,
                               bool last) override;

 private:
  uint32_t resultNumber(size_t iteration, size_t result) const {
    return static_cast<uint32_t>(iteration * loop_->numResults() + result);
  }
  // Returns those of the edges that are of arguments of the body.
  uint64_t bitsOf(const std::vector<bool>& edges) const {
    uint64_t bits = 0;
    for (size_t k = 0; k < edges.size(); ++k) {
      if (edges[k]) bits |= uint64_t{1} << loop_->plan().arguments()[k];
    }
    return bits;
  }
  uint64_t allEdges() const {
    std::vector<bool> edges;
    for (const Edge& edge : next()) edges.push_back(static_cast<bool>(edge));
    return bitsOf(edges);
  }
  const GraphOperators& operatorsAt(size_t t) const {
    return t == 0 ? loop_->plan().operatorsAtFirst() : loop_->plan().operators();
  }

  // The arguments of iteration t that a walk wants. `before`: of the results of the iteration before
  // those that lead to something wanted.
  uint64_t wantedOf(size_t t, uint64_t edges, uint64_t before) const {
    uint64_t wanted = 0;
    for (const size_t a : loop_->plan().arguments()) {
      const std::optional<size_t> result = t > 0 ? loop_->resultBefore(a) : std::nullopt;
      const bool is = result ? (before >> *result & 1) != 0 : (edges >> a & 1) != 0;
      wanted |= static_cast<uint64_t>(is) << a;
    }
    return wanted;
  }
  // Returns for each iteration the results that lead to wanted edges.
  std::vector<uint64_t> leadingResults(uint64_t edges) const {
    std::vector<uint64_t> leading;
    for (size_t t = 0; t < iterations_; ++t) {
      const uint64_t wanted = wantedOf(t, edges, t > 0 ? leading[t - 1] : 0);
      leading.push_back(operatorsAt(t).resultsLeadingTo(wanted));
    }
    return leading;
  }

  const SavedValue& savedAt(size_t t, size_t i) const {
    return loop_->isOutside(i) ? outside_[loop_->place(i)]
                               : inside_[t * loop_->numInside() + loop_->place(i)];
  }

  std::vector<IValue> argumentsOf(const RegionPlan::Backward& backward, size_t t,
                                  const std::vector<Tensor>& gradients) {
    using Parameter = RegionPlan::Backward::Parameter;
    std::vector<IValue> arguments;
    for (const auto& [kind, index] : backward.parameters) {
      if (kind == Parameter::Kind::Gradient) {
        arguments.emplace_back(gradients.at(index));
      } else if (kind == Parameter::Kind::Number) {
        arguments.emplace_back(numberOf(index, t));
      } else {
        arguments.push_back(savedAt(t, index).unpack(*this));
      }
    }
    return arguments;
  }

  // Returns the arguments of the backward function at iteration t, or raises as the tape would.
  std::vector<IValue> read(const RegionPlan::Backward& backward, const Ends& walk, size_t t,
                           const std::vector<Tensor>& gradients, bool last) {
    const SavedUses& uses = loop_->plan().uses();
    SavedOfGraph::Passage first;
    if (t == 0) {
      first.passed = operatorsAt(0).passed(walk);
      first.kept = uses.keptBy(first.passed);
    }
    const SavedOfGraph::Passage& passage = t == 0 ? first : backward.passage;
    std::vector<SavedValue> dropped;  // without the mutex
    const std::lock_guard lock(mutex_);
    uses.check(passage.passed, passage.kept, spent_.empty() ? OperatorSet() : spent_[t],
               [&](size_t i) {
                 const SavedValue& saved = savedAt(t, i);
                 return saved.isReleased() ? nullptr : &saved;
               });
    std::vector<IValue> arguments = argumentsOf(backward, t, gradients);
    if (!last) return arguments;
    if (spent_.empty()) startSpending();
    spent_[t].insert(passage.passed);
    for (size_t i = 0; i < loop_->plan().saved().size(); ++i) {
      if (loop_->isOutside(i) || !uses.readers(i).isWithin(spent_[t])) continue;
      SavedValue& saved = inside_[t * loop_->numInside() + loop_->place(i)];
      if (saved.isTensor()) dropped.push_back(saved.release());
    }
    return arguments;
  }

  // Operators that are not on the tape in the first iteration keep nothing there.
  void startSpending() {
    spent_.resize(iterations_);
    const GraphOperators& all = loop_->plan().operators();
    for (size_t n = 0; n < all.all().size(); ++n) {
      if (all.keeping().has(n) && !operatorsAt(0).keeping().has(n)) spent_[0].insert(n);
    }
  }

  // Lets go of what comes from outside and is read by no iteration any more.
  void releaseOutside() {
    std::vector<SavedValue> dropped;  // without the mutex
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < loop_->plan().saved().size(); ++i) {
      if (!loop_->isOutside(i) || !savedAt(0, i).isTensor()) continue;
      const OperatorSet& readers = loop_->plan().uses().readers(i);
      const bool over = std::ranges::all_of(
          spent_, [&](const OperatorSet& spent) { return readers.isWithin(spent); });
      if (over) dropped.push_back(outside_[loop_->place(i)].release());
    }
  }

  int64_t numberOf(size_t index, size_t t) const {
    const std::vector<RegionPlan::Number>& numbers = loop_->plan().numbers();
    if (numbers[index].argument) return sizes_[index];
    size_t place = 0;
    for (size_t i = 0; i < index; ++i) place += !numbers[i].argument;
    return counted_[t * loop_->numCounted() + place];
  }

  const std::shared_ptr<const LoopPlan> loop_;
  size_t iterations_ = 0;
  std::vector<int64_t> sizes_;    // of numbers that are sizes of arguments
  std::vector<int64_t> counted_;  // of the others, by iteration
  std::mutex mutex_;              // of the rest: several threads may walk here
  std::vector<SavedValue> outside_, inside_;
  std::vector<OperatorSet> spent_;  // by iteration; empty before the first walk that lets go
};

std::vector<Tensor> LoopNode::applyFor(const std::vector<Tensor>& gradients, Wanted wanted,
                                       bool last) {
  const RegionPlan& plan = loop_->plan();
  const uint64_t edges = wanted ? bitsOf(*wanted) : allEdges();
  const std::vector<uint64_t> leading = leadingResults(edges);
  std::vector<Tensor> out(plan.arguments().size());
  std::vector<Tensor> carried(loop_->numResults());  // from the iteration behind, by result
  bool read_any = false;
  for (size_t t = iterations_; t-- > 0;) {
    std::vector<Tensor> here = std::move(carried);
    carried.assign(loop_->numResults(), Tensor());
    Ends walk{0, wantedOf(t, edges, t > 0 ? leading[t - 1] : 0)};
    for (size_t r = 0; r < here.size(); ++r) {
      here[r] = sumOfGradients(gradients.at(resultNumber(t, r)), here[r]);
      if (here[r].defined() && plan.needsGradient(r)) walk.results |= uint64_t{1} << r;
    }
    walk.results &= leading[t];
    if (walk.results == 0) continue;
    const auto backward = plan.backward(walk);
    if (!backward->function) continue;
    std::vector<IValue> arguments = read(*backward, walk, t, here, last);
    read_any = true;
    here.clear();
    const IValue found = runFunction(*backward->function, std::move(arguments));
    for (size_t k = 0; k < backward->found.size(); ++k) {
      const size_t edge = backward->found[k];
      const Tensor gradient = found.elements().at(k).toTensor();
      const std::optional<size_t> before = loop_->resultBefore(plan.arguments()[edge]);
      if (!before) {
        addGradient(out[edge], gradient);
      } else if (t == 0) {
        out[edge] = gradient;
      } else {
        const Shape& shape = shapes()[resultNumber(t - 1, *before)];
        addGradient(carried[*before], fitted(gradient, shape, name()));
      }
    }
  }
  if (last && read_any) releaseOutside();
  return out;
}

// The site's argument or constant that a value in its body is.
struct Origin {
  std::optional<size_t> argument;
  IValue constant;
  IValue of(const IValue* arguments) const { return argument ? arguments[*argument] : constant; }
};

class LoopDerivative : public SiteDerivative {
 public:
  explicit LoopDerivative(const wick::Node& node) {
    std::shared_ptr<Graph> graph = node.subgraph(attr::Subgraph)->copy();
    dissolveFusionGroups(*graph);
    const wick::Node* loop = nullptr;
    for (const wick::Node* node : graph->nodes()) {
      if (node->kind() == prim::Loop) loop = node;
    }
    WICK_ASSERT(loop, "a graph of a loop without one");
    readLoop(*graph, *loop, writesTo(node));
    plain_.emplace(std::move(graph));
  }

  bool computesAlone() const override { return true; }

  bool compute(const IValue* arguments, size_t num_arguments, IValue* results,
               size_t num_results) override {
    return plain_->compute(arguments, num_arguments, results, num_results);
  }

  bool run(const IValue* arguments, size_t, IValue* results, size_t num_results,
           const std::function<bool()>&) override {
    // Whoever looks for the operator that makes a NaN wants each by itself.
    if (detectsAnomaly()) return false;
    const int64_t count = trip_count_.of(arguments).toInt();
    std::vector<IValue> given{IValue(int64_t{0})};
    for (const Origin& origin : initial_) given.push_back(origin.of(arguments));
    for (const Origin& origin : outside_) given.push_back(origin.of(arguments));
    const std::optional<uint64_t> mask = argumentsWithGradients(given.data(), given.size());
    if (!mask || *mask == 0) return false;
    std::vector<ListRef> lists;
    for (size_t i = initial_.size(); i < num_results; ++i)
      lists.push_back(makeList(types::Tensor()));
    if (count > 0) {
      const auto plan = planFor(given, *mask);
      // Results of the node have numbers of 32 bits.
      if (!plan || static_cast<uint64_t>(count) >
                       std::numeric_limits<uint32_t>::max() / (plan->numResults() + 1)) {
        return false;
      }
      iterate(plan, count, given, lists);
    }
    for (size_t k = 0; k < initial_.size(); ++k) results[k] = given[1 + k];
    for (size_t i = 0; i < lists.size(); ++i) {
      results[initial_.size() + i] = IValue(std::move(lists[i]));
    }
    return true;
  }

 private:
  // The body of the loop as a graph.
  void readLoop(const Graph& graph, const wick::Node& loop, const RegionPlan::Writes& writes) {
    const auto originOf = [](const Value* v) {
      Origin origin;
      if (v->node()->kind() == prim::Param) {
        origin.argument = v->offset();
      } else {
        origin.constant = constantOf(v).value();
      }
      return origin;
    };
    trip_count_ = originOf(loop.input(0));
    for (size_t k = 2; k < loop.inputs().size(); ++k) initial_.push_back(originOf(loop.input(k)));
    const auto body = std::make_shared<Graph>();
    std::unordered_map<Value*, Value*> inside;
    const Block* block = loop.blocks()[0];
    for (Value* v : block->inputs()) inside[v] = body->block()->addInput(v->type());
    std::unordered_map<const Value*, size_t> lists;
    for (wick::Node* node : graph.nodes()) {
      if (node->kind() != prim::Constant) continue;
      inside[node->output()] = body->insertNode(body->createClone(node, {}))->output();
    }
    for (Value* v : graph.inputs()) {
      if (v == loop.input(0) && v->uses().size() == 1) continue;
      inside[v] = body->block()->addInput(v->type());
      outside_.push_back({v->offset(), IValue()});
    }
    for (size_t i = initial_.size(); i < graph.outputs().size(); ++i) {
      lists[graph.outputs()[i]] = lists.size();
    }
    static const Symbol kAppend = Symbol::aten("append");
    std::vector<Value*> appended;
    for (wick::Node* node : block->nodes()) {
      if (node->kind() == kAppend) {
        list_of_.push_back(lists.at(node->input(0)));
        appended.push_back(node->input(1));
        continue;
      }
      wick::Node* copy = body->insertNode(body->createClone(node, inside));
      for (size_t i = 0; i < node->outputs().size(); ++i) inside[node->output(i)] = copy->output(i);
    }
    for (size_t k = 1; k < block->outputs().size(); ++k) {
      body->registerOutput(inside.at(block->outputs()[k]));
    }
    for (Value* v : appended) body->registerOutput(inside.at(v));
    dropUnread(*body);
    plans_.emplace(body, writesInBody(writes), initial_.size());
  }

  // The same for arguments and results of the body.
  RegionPlan::Writes writesInBody(const RegionPlan::Writes& of_node) const {
    RegionPlan::Writes made;
    const auto isSet = [](uint64_t bits, size_t i) { return i >= 64 || (bits >> i & 1) != 0; };
    const auto set = [](uint64_t& bits, size_t i) { bits |= i < 64 ? uint64_t{1} << i : 0; };
    const auto comesWritten = [&](const Origin& origin) {
      return origin.argument && isSet(of_node.arguments, *origin.argument);
    };
    for (size_t k = 0; k < initial_.size(); ++k) {
      if (isSet(of_node.results, k)) set(made.results, k);
      if (isSet(of_node.results, k) || comesWritten(initial_[k])) set(made.arguments, 1 + k);
    }
    for (size_t j = 0; j < outside_.size(); ++j) {
      if (comesWritten(outside_[j])) set(made.arguments, 1 + initial_.size() + j);
    }
    for (size_t i = 0; i < list_of_.size(); ++i) {
      if (isSet(of_node.results, initial_.size() + list_of_[i])) {
        set(made.results, initial_.size() + i);
      }
    }
    return made;
  }

  // What the graph gets for the loop's sake alone.
  void dropUnread(Graph& body) {
    for (size_t i = outside_.size(); i-- > 0;) {
      const size_t input = 1 + initial_.size() + i;
      if (!body.inputs()[input]->uses().empty()) continue;
      body.block()->eraseInput(input);
      outside_.erase(outside_.begin() + static_cast<ptrdiff_t>(i));
    }
  }

  std::shared_ptr<const LoopPlan> planFor(const std::vector<IValue>& given, uint64_t mask) {
    auto plan = plans_->planFor(given.data(), given.size(), mask);
    if (!plan) return nullptr;
    std::lock_guard lock(mutex_);
    // As many as there are plans.
    for (const auto& known : known_) {
      if (&known->plan() == plan.get()) return known;
    }
    known_.push_back(std::make_shared<const LoopPlan>(std::move(plan), initial_.size()));
    return known_.back();
  }

  // `given`: of the first iteration, then of the one behind the last.
  void iterate(const std::shared_ptr<const LoopPlan>& loop, int64_t count,
               std::vector<IValue>& given, std::vector<ListRef>& lists) {
    const RegionPlan& plan = loop->plan();
    const Ref<LoopNode> node = makeRef<LoopNode>(loop, given);
    for (int64_t t = 0; t < count; ++t) {
      given[0] = IValue(t);
      node->saveArguments(given);
      IValue found;
      {
        const BelowRecorder below;
        found = runFunction(plan.forward(), given);
      }
      const std::vector<IValue>& all = found.elements();
      node->addIteration(all, t + 1 == count);
      for (size_t i = 0; i < list_of_.size(); ++i) {
        lists[list_of_[i]]->elements.push_back(
            resultOf(plan, given.data(), all, initial_.size() + i));
      }
      std::vector<IValue> next;
      for (size_t k = 0; k < initial_.size(); ++k) {
        next.push_back(resultOf(plan, given.data(), all, k));
      }
      std::ranges::move(next, given.begin() + 1);
    }
    loops_as_graphs.fetch_add(1, std::memory_order_relaxed);
  }

  std::optional<PlainFunction> plain_;
  Origin trip_count_;
  std::vector<Origin> initial_, outside_;
  std::vector<size_t> list_of_;  // of each append, in the order of the program
  std::optional<RegionPlans> plans_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<const LoopPlan>> known_;
};

}  // namespace

bool holdsLoop(const Graph& body) {
  return std::ranges::any_of(body.nodes(),
                             [](const wick::Node* node) { return node->kind() == prim::Loop; });
}

std::unique_ptr<SiteDerivative> makeLoopDerivative(const wick::Node& graph) {
  return std::make_unique<LoopDerivative>(graph);
}

uint64_t numLoopsAsGraphs() {
  return loops_as_graphs.load(std::memory_order_relaxed);
}

}  // namespace wick::autograd
