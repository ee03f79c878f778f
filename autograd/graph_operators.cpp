#include "autograd/graph_operators.h"

#include <algorithm>
#include <bit>

#include "autograd/formula_graph.h"

namespace wick::autograd {

void OperatorSet::insert(size_t number) {
  if (words_.size() <= number / 64) words_.resize(number / 64 + 1);
  words_[number / 64] |= uint64_t{1} << number % 64;
}

void OperatorSet::insert(const OperatorSet& other) {
  if (words_.size() < other.words_.size()) words_.resize(other.words_.size());
  for (size_t i = 0; i < other.words_.size(); ++i) words_[i] |= other.words_[i];
}

bool OperatorSet::empty() const {
  return words_.empty();
}

bool OperatorSet::has(size_t number) const {
  return number / 64 < words_.size() && (words_[number / 64] >> number % 64 & 1) != 0;
}

bool OperatorSet::meets(const OperatorSet& other) const {
  const size_t n = std::min(words_.size(), other.words_.size());
  for (size_t i = 0; i < n; ++i) {
    if ((words_[i] & other.words_[i]) != 0) return true;
  }
  return false;
}

bool OperatorSet::isWithin(const OperatorSet& other) const {
  if (words_.size() > other.words_.size()) return false;
  for (size_t i = 0; i < words_.size(); ++i) {
    if ((words_[i] & ~other.words_[i]) != 0) return false;
  }
  return true;
}

OperatorSet OperatorSet::intersection(const OperatorSet& other) const {
  OperatorSet both;
  both.words_.resize(std::min(words_.size(), other.words_.size()));
  for (size_t i = 0; i < both.words_.size(); ++i) both.words_[i] = words_[i] & other.words_[i];
  while (!both.words_.empty() && both.words_.back() == 0) both.words_.pop_back();
  return both;
}

std::optional<size_t> OperatorSet::lastIn(const OperatorSet& other) const {
  for (size_t i = std::min(words_.size(), other.words_.size()); i-- > 0;) {
    const uint64_t both = words_[i] & other.words_[i];
    if (both != 0) return i * 64 + static_cast<size_t>(std::bit_width(both)) - 1;
  }
  return std::nullopt;
}

namespace {

GraphOperators::Operator describe(const wick::Node* node,
                                  const std::function<bool(const Value*)>& needs) {
  using Source = GradientFunction::Source;
  GraphOperators::Operator made{node, {}, {}};
  if (node->kind() == prim::ListConstruct || node->kind() == prim::ListUnpack) {
    std::ranges::copy_if(node->inputs(), std::back_inserter(made.flows), needs);
    return made;
  }
  const wick::Operator* op = node->maybeOperator();
  if (!op || ruleOf(*op).kind() != Rule::Kind::Formula) return made;
  uint64_t wanted = coveredInputs(ruleOf(*op), node);
  for (size_t i = 0; i < node->inputs().size() && i < 64; ++i) {
    if ((wanted >> i & 1) == 0) continue;
    if (needs(node->input(i))) {
      made.flows.push_back(node->input(i));
    } else {
      wanted &= ~(uint64_t{1} << i);
    }
  }
  if (wanted == 0) return made;
  const auto holdsTensors = [](const Value* v) {
    return v->type()->kind() == TypeKind::Tensor || isTensorList(v);
  };
  for (const Source& source : ruleOf(*op).gradients(wanted).sources) {
    const bool argument = source.kind == Source::Kind::Argument;
    if (source.part != Source::Part::Value || (!argument && source.kind != Source::Kind::Result)) {
      continue;
    }
    made.reads.push_back(argument ? node->input(source.index) : node->output());
    made.keeps = made.keeps || holdsTensors(made.reads.back());
  }
  return made;
}

uint64_t argumentBit(const Value* v) {
  const bool is = v->node()->kind() == prim::Param && v->offset() < 64;
  return is ? uint64_t{1} << v->offset() : 0;
}

}  // namespace

GraphOperators::GraphOperators(const Graph& body, std::span<const Value* const> results,
                               const std::function<bool(const Value*)>& needs)
    : results_(results.begin(), results.end()) {
  std::unordered_map<const Value*, uint64_t> arguments;
  for (const Value* v : body.inputs()) {
    if (needs(v)) arguments[v] = argumentBit(v);
  }
  for (const wick::Node* node : body.nodes()) {
    const bool any = std::ranges::any_of(node->outputs(), needs);
    Operator op = any ? describe(node, needs) : Operator{node, {}, {}};
    uint64_t from = 0;
    for (const Value* v : op.flows) from |= arguments[v];
    for (const Value* v : node->outputs()) arguments[v] = from;
    if (op.keeps) keeping_.insert(operators_.size());
    operators_.push_back(std::move(op));
  }
  for (const Value* v : results_) {
    const auto found = arguments.find(v);
    arguments_of_.push_back(found == arguments.end() ? 0 : found->second);
  }
}

Ends GraphOperators::joined(Ends walk) const {
  Ends made;
  made.results = walk.results & resultsLeadingTo(walk.arguments);
  for (uint64_t rest = made.results; rest != 0; rest &= rest - 1) {
    made.arguments |= arguments_of_[static_cast<size_t>(std::countr_zero(rest))];
  }
  made.arguments &= walk.arguments;
  return made;
}

uint64_t GraphOperators::resultsLeadingTo(uint64_t arguments) const {
  uint64_t results = 0;
  for (size_t i = 0; i < arguments_of_.size() && i < 64; ++i) {
    results |= static_cast<uint64_t>((arguments_of_[i] & arguments) != 0) << i;
  }
  return results;
}

std::unordered_set<const Value*> GraphOperators::valuesLeadingTo(uint64_t arguments) const {
  std::unordered_set<const Value*> leading;
  for (const Operator& op : operators_) {
    bool leads = false;
    for (const Value* v : op.flows) {
      if ((argumentBit(v) & arguments) != 0) leading.insert(v);
      leads = leads || leading.count(v) != 0;
    }
    if (leads) leading.insert(op.node->outputs().begin(), op.node->outputs().end());
  }
  // A result may be an argument itself.
  for (const Value* v : results_) {
    if ((argumentBit(v) & arguments) != 0) leading.insert(v);
  }
  return leading;
}

OperatorSet GraphOperators::passed(Ends walk) const {
  const std::unordered_set<const Value*> leading = valuesLeadingTo(walk.arguments);
  std::unordered_set<const Value*> reached;
  for (size_t i = 0; i < results_.size() && i < 64; ++i) {
    if ((walk.results >> i & 1) != 0 && leading.count(results_[i]) != 0)
      reached.insert(results_[i]);
  }
  OperatorSet passed;
  for (size_t n = operators_.size(); n-- > 0;) {
    const Operator& op = operators_[n];
    const bool passes = std::ranges::any_of(op.node->outputs(),
                                            [&](const Value* v) { return reached.count(v) != 0; });
    if (!passes) continue;
    if (op.keeps) passed.insert(n);
    for (const Value* v : op.flows) {
      if (leading.count(v) != 0) reached.insert(v);
    }
  }
  return passed;
}

std::vector<OperatorSet> GraphOperators::alwaysPassedWith() const {
  std::unordered_map<const wick::Node*, size_t> numbers;
  std::vector<OperatorSet> always;
  for (size_t n = 0; n < operators_.size(); ++n) {
    const Operator& op = operators_[n];
    numbers[op.node] = n;
    std::optional<OperatorSet> behind;  // of all inputs; a walk may want one of these alone
    for (const Value* v : op.flows) {
      const auto found = numbers.find(v->node());
      const OperatorSet here = found == numbers.end() ? OperatorSet() : always[found->second];
      behind = behind ? behind->intersection(here) : here;
    }
    always.push_back(behind.value_or(OperatorSet()));
    if (op.keeps) always.back().insert(n);
  }
  return always;
}

}  // namespace wick::autograd
