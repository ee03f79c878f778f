#include "autograd/region_plan.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <unordered_set>

#include "autograd/formula_graph.h"
#include "autograd/region_composites.h"
#include "autograd/region_graphs.h"
#include "core/error.h"
#include "ir/shape_facts.h"
#include "passes/constant_propagation.h"
#include "passes/dead_code_elimination.h"
#include "passes/node_traits.h"
#include "passes/propagate_types.h"

namespace wick::autograd {

namespace {

using Source = GradientFunction::Source;

std::atomic<uint64_t> plans_made{0};

int64_t numberOfElements(const Value* v) {
  const std::optional<KnownSizes> sizes = knownSizes(v);
  int64_t count = 1;
  for (const int64_t s : sizes.value_or(KnownSizes())) {
    // What only running tells may be large.
    if (s < 0 || (s != 0 && count > (int64_t{1} << 40) / s)) return int64_t{1} << 40;
    count *= s;
  }
  return count;
}

// The inputs of a graph and the results of its nodes.
std::vector<Value*> valuesOf(Graph& graph) {
  std::vector<Value*> values(graph.inputs().begin(), graph.inputs().end());
  for (wick::Node* node : graph.nodes()) {
    values.insert(values.end(), node->outputs().begin(), node->outputs().end());
  }
  return values;
}

bool hasBlocks(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(),
                             [](const wick::Node* node) { return !node->blocks().empty(); });
}

// Lets a constant, which is made at the front, stand for a value.
void becomes(Graph& graph, Value* v, const IValue& constant) {
  v->replaceAllUsesWith(graph.block()->prependNode(graph.createConstant(constant))->output());
}

}  // namespace

std::vector<int64_t> RegionPlan::numbersOf(const std::vector<Input>& inputs) {
  std::vector<int64_t> numbers;
  for (const Input& input : inputs) {
    numbers.insert(numbers.end(), input.sizes.begin(), input.sizes.end());
    if (input.value && input.value->isInt()) numbers.push_back(input.value->toInt());
  }
  return numbers;
}

std::shared_ptr<const RegionPlan> RegionPlan::make(const Graph& body,
                                                   const std::vector<Input>& inputs,
                                                   const SizePattern& sizes, uint64_t mask,
                                                   uint64_t leaves, const Writes& writes,
                                                   std::optional<size_t> carried) {
  std::shared_ptr<RegionPlan> plan(new RegionPlan);
  if (!plan->findTypes(body, inputs, sizes)) return nullptr;
  plan->findResults();
  // Training writes to leaves.
  plan->writes_ = {writes.arguments | leaves, writes.results};
  if (carried) {
    if (!plan->keepsTypes(*carried) || !plan->findNeedsOfLoop(mask, *carried)) return nullptr;
    // What comes from outside is kept once for all iterations.
    leaves = ~uint64_t{0} << (1 + *carried);
  } else if (!plan->findNeeds(mask)) {
    return nullptr;
  }
  if (!plan->findSaved(leaves)) return nullptr;
  plan->findNumbers();
  plan->buildForward();
  plan->findUses();
  Ends all{0, plan->argumentBits()};
  for (size_t i = 0; i < plan->numResults(); ++i) all.results |= uint64_t{1} << i;
  all = plan->operators_->joined(all);
  // Formulas that do not fit are found here.
  auto first = plan->build(all);
  if (!first) return nullptr;
  plan->backward_[all] = std::move(first);
  plans_made.fetch_add(1, std::memory_order_relaxed);
  return plan;
}

uint64_t RegionPlan::argumentBits() const {
  uint64_t bits = 0;
  for (const size_t i : arguments_) bits |= uint64_t{1} << i;
  return bits;
}

bool RegionPlan::isScalar(size_t result) const {
  const std::optional<KnownSizes> sizes = knownSizes(body_->outputs()[result]);
  return sizes && sizes->empty();
}

uint64_t RegionPlan::numMade() {
  return plans_made.load(std::memory_order_relaxed);
}

// The body without branches, and the types of its values.
bool RegionPlan::findTypes(const Graph& body, const std::vector<Input>& inputs,
                           const SizePattern& sizes) {
  body_ = body.copy();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::optional<IValue>& value = inputs[i].value;
    if (value && value->isBool()) becomes(*body_, body_->inputs()[i], *value);
  }
  if (hasBlocks(*body_)) propagateConstants(*body_);
  eliminateDeadCode(*body_);
  nameSizes(inputs, sizes);
  if (!expandComposites() || hasBlocks(*body_)) return false;
  SymbolicSizes symbols(-static_cast<int64_t>(sizes.numClasses()));
  propagateTypes(*body_, symbols);
  const SymbolicSizes::Scope scope(symbols);
  for (const Value* v : valuesOf(*body_)) {
    if (isTensor(v) && !knownSizes(v)) return false;
    const Size s = v->type()->kind() == TypeKind::Int ? sizeValue(v) : Size();
    if (s && *s < 0) int_symbols_[v] = *s;
  }
  // Once more for the sizes of the first call.
  const std::shared_ptr<Graph> first = body_->copy();
  const std::vector<Value*> values = valuesOf(*body_), first_values = valuesOf(*first);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Input& input = inputs[i];
    if (input.value && input.value->isInt()) becomes(*first, first->inputs()[i], *input.value);
    if (!input.dtype) continue;
    first->inputs()[i]->setType(
        tensorType(*input.dtype, KnownSizes(input.sizes.begin(), input.sizes.end())));
  }
  propagateTypes(*first);
  for (size_t v = 0; v < values.size(); ++v) {
    if (isTensor(values[v])) elements_[values[v]] = numberOfElements(first_values[v]);
  }
  return true;
}

// Lets the scripts of composites stand for them. False where one does not fit.
bool RegionPlan::expandComposites() {
  const auto isComposite = [](const wick::Node* node) {
    const Operator* op = node->maybeOperator();
    return op && compositeGraph(*op);
  };
  while (true) {
    const auto nodes = body_->nodes();
    const auto found = std::find_if(nodes.begin(), nodes.end(), isComposite);
    if (found == nodes.end()) return true;
    wick::Node* node = *found;
    // One may read what another one gives.
    propagateTypes(*body_);
    if (!compositeFits(*node)) return false;
    {
      const InsertPointGuard guard(node);
      const std::vector<Value*> results =
          inlineGraph(*body_, *compositeGraph(*node->maybeOperator()), node->inputs());
      replaceValue(node->output(), results[0]);
      node->destroy();
    }
    foldShapes(*body_);
  }
}

void RegionPlan::nameSizes(const std::vector<Input>& inputs, const SizePattern& sizes) {
  // Of each class a dimension that has its size.
  struct Place {
    Value* tensor = nullptr;
    int64_t dim = 0;
  };
  std::vector<Place> places(sizes.numClasses());
  const auto symbolFor = [](size_t c) { return -1 - static_cast<int64_t>(c); };
  std::vector<std::pair<Value*, size_t>> ints;
  size_t at = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Value* v = body_->inputs()[i];
    if (inputs[i].value && inputs[i].value->isInt()) {
      if (const auto c = sizes.classOf(at)) {
        ints.emplace_back(v, *c);
      } else {
        becomes(*body_, v, IValue(sizes.number(at)));
      }
      ++at;
    }
    if (!inputs[i].dtype) continue;
    KnownSizes named;
    for (size_t d = 0; d < inputs[i].sizes.size(); ++d, ++at) {
      const auto c = sizes.classOf(at);
      named.push_back(c ? symbolFor(*c) : sizes.number(at));
      if (c) places[*c] = {v, static_cast<int64_t>(d)};
    }
    v->setType(tensorType(*inputs[i].dtype, named));
  }
  for (const auto& [v, c] : ints) {
    if (!places[c].tensor || v->uses().empty()) continue;
    wick::Node* node = body_->create(aten::size, {places[c].tensor, places[c].tensor});
    node->output()->setType(types::Int());
    v->replaceAllUsesWith(node->output());
    body_->block()->prependNode(node);
    wick::Node* dim = body_->block()->prependNode(body_->createConstant(IValue(places[c].dim)));
    node->replaceInput(1, dim->output());
  }
}

std::optional<int64_t> RegionPlan::symbolOf(const Value* v) const {
  const auto found = int_symbols_.find(v);
  return found == int_symbols_.end() ? std::nullopt : std::optional(found->second);
}

int64_t RegionPlan::elementsOf(const Value* v) const {
  const auto found = elements_.find(v);
  return found == elements_.end() ? 0 : found->second;
}

// What branches hand on may be an argument, or the same value as another result.
void RegionPlan::findResults() {
  std::unordered_map<const Value*, size_t> first;
  for (size_t i = 0; i < body_->outputs().size(); ++i) {
    const Value* v = body_->outputs()[i];
    const auto [found, added] = first.try_emplace(v, i);
    same_.emplace_back();
    if (v->node()->kind() == prim::Param) {
      same_.back() = {true, v->offset()};
    } else if (!added) {
      same_.back() = {false, found->second};
    }
  }
}

// Whether each iteration gets what the one before it got, as far as a plan knows of it.
bool RegionPlan::keepsTypes(size_t carried) const {
  for (const Value* v : body_->outputs()) {
    if (isConstant(v)) return false;
  }
  for (size_t k = 0; k < carried; ++k) {
    const Value* before = body_->inputs()[1 + k];
    const Value* after = body_->outputs()[k];
    if (*knownSizes(before) != *knownSizes(after) || dtypeOf(before) != dtypeOf(after))
      return false;
    // Handing on what came as another value would let the iteration read it, too.
    if (same_[k] && same_[k]->argument && same_[k]->index != 1 + k) return false;
  }
  return true;
}

// A carried value needs a gradient where the first one does, or the result that becomes the next
// one. Results must need theirs in each iteration or in none: whoever asks a tensor finds the same
// on the tape.
bool RegionPlan::findNeedsOfLoop(uint64_t mask, size_t carried) {
  std::optional<std::vector<bool>> first;
  while (true) {
    needed_.clear();
    arguments_.clear();
    if (!findNeeds(mask)) return false;
    if (!needed_at_first_) needed_at_first_ = needed_;
    std::vector<bool> needs;
    uint64_t next = mask;
    for (size_t i = 0; i < body_->outputs().size(); ++i) {
      needs.push_back(needed_.count(body_->outputs()[i]) != 0);
      if (i < carried && needs[i]) next |= uint64_t{1} << (1 + i);
      if (i < carried && !needs[i] && (mask >> (1 + i) & 1) != 0) return false;
    }
    if (first && needs != *first) return false;
    first = needs;
    if (next == mask) break;
    mask = next;
  }
  if (*needed_at_first_ == needed_) needed_at_first_.reset();
  return true;
}

bool RegionPlan::findNeeds(uint64_t mask) {
  for (size_t i = 0; i < body_->inputs().size() && i < 64; ++i) {
    const Value* input = body_->inputs()[i];
    if ((mask >> i & 1) == 0) continue;
    needed_[input] = true;
    arguments_.push_back(i);
  }
  std::optional<DType> dtype;
  for (const wick::Node* node : body_->nodes()) {
    if (node->kind() == prim::ListConstruct || node->kind() == prim::ListUnpack) {
      const bool any = std::ranges::any_of(node->inputs(),
                                           [&](const Value* v) { return needed_.count(v) != 0; });
      for (const Value* v : node->outputs()) {
        if (any) needed_[v] = true;
      }
      continue;
    }
    const Operator* op = node->maybeOperator();
    if (!op) continue;
    const uint64_t wanted = wantedInputs(node, needed_);
    const Rule::Kind kind = ruleOf(*op).kind();
    if (wanted == 0 || kind == Rule::Kind::None || kind == Rule::Kind::Ignored) continue;
    if (kind != Rule::Kind::Formula) return false;
    if ((wanted & ~coveredInputs(ruleOf(*op), node)) != 0) return false;
    if (isTensorList(node->output())) {
      needed_[node->output()] = true;
      continue;
    }
    // Gradients have their arguments' dtype all along.
    if (!isFloating(dtypeOf(node->output()))) return false;
    if (dtype && *dtype != dtypeOf(node->output())) return false;
    dtype = dtypeOf(node->output());
    needed_[node->output()] = true;
  }
  return body_->outputs().size() < 32;
}

// The sizes that backward functions may ask for.
void RegionPlan::findNumbers() {
  for (const wick::Node* node : body_->nodes()) {
    if (node->outputs().empty() || needed_.count(node->outputs()[0]) == 0) continue;
    for (const Value* v : node->outputs()) addNumbers(v);
    for (const Value* v : node->inputs()) addNumbers(v);
  }
  for (const wick::Node* node : body_->nodes()) {
    for (const Value* v : node->outputs()) {
      if (const auto symbol = symbolOf(v)) addNumbers(node->input(0));
    }
  }
}

void RegionPlan::addNumbers(const Value* sizes_of) {
  if (!isTensor(sizes_of)) return;
  const KnownSizes sizes = *knownSizes(sizes_of);
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] >= 0 || std::ranges::count(symbols_, sizes[d]) > 0) continue;
    std::optional<Number> number;
    for (size_t i = 0; !number && i < body_->inputs().size(); ++i) {
      const Value* input = body_->inputs()[i];
      if (!isTensor(input)) continue;
      const KnownSizes given = *knownSizes(input);
      const auto found = std::ranges::find(given, sizes[d]);
      if (found != given.end()) {
        number = {true, i, static_cast<size_t>(found - given.begin())};
      }
    }
    if (!number) {
      number = {false, forward_results_.size() + result_sizes_.size(), 0};
      result_sizes_.emplace_back(sizes_of, d);
    }
    symbols_.push_back(sizes[d]);
    numbers_.push_back(*number);
  }
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
  for (const auto& [v, d] : result_sizes_) {
    Value* dim = graph->insertConstant(IValue(static_cast<int64_t>(d)));
    wick::Node* size = graph->create(aten::size, {inside.at(const_cast<Value*>(v)), dim});
    size->output()->setType(types::Int());
    results.push_back(graph->insertNode(size)->output());
  }
  graph->registerOutput(graph->insertNode(graph->createTuple(results))->output());
  unit_ = std::make_shared<CompilationUnit>();
  forward_ = unit_->createFunction("__torch__.forward", std::move(graph));
}

std::shared_ptr<const RegionPlan::Backward> RegionPlan::backward(Ends walk) const {
  constexpr size_t kMost = 32;
  walk = operators_->joined(walk);
  std::lock_guard lock(mutex_);
  if (const auto known = backward_.find(walk); known != backward_.end()) return known->second;
  std::shared_ptr<const Backward> made = build(walk);
  WICK_ASSERT(made, "the gradient of a graph cannot be computed from what it saved");
  if (backward_.size() < kMost) backward_.emplace(walk, made);
  return made;
}

}  // namespace wick::autograd
