// Which values a plan (autograd/region_plan.h) saves: what formulas read, and the least that it can be
// computed from.
//
// A walk must raise when the tape would, because somebody wrote to memory that an operator keeps, and
// not otherwise. So of memory to which others may write a gradient reads no more than what the tape
// would have kept for it:
//
//   t = tanh(x + w)      tanh keeps t, addition keeps nothing: t is saved where w may be written to,
//   y = t * v            and may be computed again from x and w where nobody writes to either
#include <algorithm>

#include "autograd/formula_graph.h"
#include "autograd/region_graphs.h"
#include "autograd/region_plan.h"
#include "autograd/vertex_cut.h"

namespace wick::autograd {

namespace {

// Whether the node's result has its argument's memory whatever the strides are.
bool isSureView(const wick::Node* node) {
  static const Symbol kReshape = Symbol::aten("reshape"), kFlatten = Symbol::aten("flatten");
  return isView(node) && node->kind() != kReshape && node->kind() != kFlatten;
}

// The value that has the memory of its own.
const Value* memoryOf(const Value* v) {
  while (isSureView(v->node())) v = v->node()->input(0);
  return v;
}

}  // namespace

// Returns whether the value is there without being saved.
bool RegionPlan::isFree(const Value* v) const {
  return isConstant(v) || symbolOf(v);
}

// From what a value that is not saved is computed again.
std::vector<const Value*> RegionPlan::computedFrom(const Value* v) const {
  std::vector<const Value*> from;
  if (isFree(v)) return from;
  for (const Value* input : v->node()->inputs()) {
    if (!isFree(input)) from.push_back(input);
  }
  return from;
}

std::function<bool(const Value*)> RegionPlan::needs() const {
  return [this](const Value* v) { return needed_.count(v) != 0; };
}

// Whether somebody may write to the value's memory.
bool RegionPlan::mayBeWritten(const Value* v) const {
  const auto isSet = [](uint64_t bits, size_t i) { return i >= 64 || (bits >> i & 1) != 0; };
  while (true) {
    if (v->node()->kind() == prim::Param) return isSet(writes_.arguments, v->offset());
    for (size_t i = 0; i < body_->outputs().size(); ++i) {
      if (body_->outputs()[i] == v && isSet(writes_.results, i)) return true;
    }
    if (!isView(v->node())) return false;
    v = v->node()->input(0);
  }
}

// False where a formula is not one for graphs, or nothing that may be saved suffices.
bool RegionPlan::findCut(uint64_t leaves, const std::unordered_set<const Value*>& stays,
                         std::vector<const Value*>& saved) const {
  std::vector<const Value*> values(body_->inputs().begin(), body_->inputs().end());
  for (const wick::Node* node : body_->nodes()) {
    if (node->kind() == prim::Constant) continue;
    values.insert(values.end(), node->outputs().begin(), node->outputs().end());
  }
  std::unordered_map<const Value*, size_t> numbers;
  for (size_t v = 0; v < values.size(); ++v) numbers[values[v]] = v;
  std::unordered_set<const Value*> reads, on_tape;
  for (const wick::Node* node : body_->nodes()) {
    const Operator* op = node->maybeOperator();
    if (!op || needed_.count(node->output()) == 0) continue;
    using Source = GradientFunction::Source;
    const GradientFunction& gradients = ruleOf(*op).gradients(wantedInputs(node, needed_));
    if (!gradientsIn(gradients, /*lists=*/true)) return false;
    for (const Source& source : gradients.sources) {
      if (source.kind == Source::Kind::Gradient || source.part != Source::Part::Value) continue;
      const Value* v =
          source.kind == Source::Kind::Argument ? node->input(source.index) : node->output();
      if (!isFree(v)) reads.insert(v);
      // The tape would save it, and with it the memory that it is a view of.
      for (; on_tape.insert(v).second && isView(v->node());) v = v->node()->input(0);
    }
  }
  const std::unordered_set<const Value*> results(body_->outputs().begin(), body_->outputs().end());
  VertexCut cut(values.size());
  for (size_t v = 0; v < values.size(); ++v) {
    const Value* value = values[v];
    const wick::Node* node = value->node();
    const int64_t elements = elementsOf(value);
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
      const bool may_be_saved = !isTensorList(value) && (!result || on_tape.count(value) != 0);
      cut.cost(v, may_be_saved ? (result ? 1 : 2) * elements + 1 : VertexCut::kNever);
      if (isCheap(node) && stays.count(value) == 0) {
        for (const Value* input : node->inputs()) {
          if (!isFree(input)) cut.computes(numbers.at(input), v);
        }
      } else {
        cut.isThere(v);
      }
    }
    if (reads.count(value) != 0) cut.isRead(v);
  }
  std::vector<size_t> found;
  if (!cut.find(found)) return false;
  saved.clear();
  for (const size_t v : found) saved.push_back(values[v]);
  return true;
}

// Arguments and results that the tape keeps and others may write to are looked at by walks, although
// nothing is computed from them.
void RegionPlan::addUncut(const GraphOperators& operators, std::vector<const Value*>& saved) const {
  std::unordered_set<const Value*> memories;
  for (const Value* v : saved) memories.insert(memoryOf(v));
  for (const GraphOperators::Operator& op : operators.all()) {
    if (!op.keeps) continue;
    for (const Value* v : op.reads) {
      const Value* memory = memoryOf(v);
      const bool visible =
          memory->node()->kind() == prim::Param || std::ranges::count(body_->outputs(), memory) > 0;
      if (visible && isTensor(v) && mayBeWritten(memory) && memories.insert(memory).second) {
        saved.push_back(memory);
      }
    }
  }
}

// The values that an operator's gradient reads and that would be computed from memory which others
// may write to, and which the tape would not have kept for the operator: these must be saved
// themselves.
std::vector<const Value*> RegionPlan::readWrongly(const GraphOperators& operators,
                                                  const std::vector<const Value*>& saved) const {
  const std::unordered_set<const Value*> there(saved.begin(), saved.end());
  const std::vector<OperatorSet> together = operators.alwaysPassedWith();
  const auto keeps = [&](const OperatorSet& set, const Value* memory) {
    for (size_t n = 0; n < operators.all().size(); ++n) {
      if (!set.has(n)) continue;
      for (const Value* v : operators.all()[n].reads) {
        if (memoryOf(v) == memory) return true;
      }
    }
    return false;
  };
  std::vector<const Value*> wrong;
  for (size_t n = 0; n < operators.all().size(); ++n) {
    const GraphOperators::Operator& op = operators.all()[n];
    for (const Value* read : op.reads) {
      if (isFree(read) || there.count(read) != 0) continue;
      std::unordered_set<const Value*> seen;
      std::vector<const Value*> waiting = {read};
      bool right = true;
      while (right && !waiting.empty()) {
        const Value* v = waiting.back();
        waiting.pop_back();
        if (!seen.insert(v).second) continue;
        if (there.count(v) == 0) {
          for (const Value* input : computedFrom(v)) waiting.push_back(input);
        } else if (isTensor(v) && mayBeWritten(v)) {
          right = keeps(together[n], memoryOf(v));
        }
      }
      if (!right) wrong.push_back(read);
    }
  }
  return wrong;
}

bool RegionPlan::findSaved(uint64_t leaves) {
  const GraphOperators operators(*body_, {}, needs());
  std::vector<const Value*> saved;
  std::unordered_set<const Value*> stays;
  while (true) {
    if (!findCut(leaves, stays, saved)) return false;
    const size_t before = stays.size();
    for (const Value* v : readWrongly(operators, saved)) stays.insert(v);
    if (stays.size() == before) break;
  }
  addUncut(operators, saved);
  std::unordered_map<const Value*, size_t> results;
  for (size_t i = 0; i < body_->outputs().size(); ++i) results.try_emplace(body_->outputs()[i], i);
  forward_results_.assign(body_->outputs().begin(), body_->outputs().end());
  for (const Value* value : saved) {
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
  for (size_t i = 0; i < forward_results_.size(); ++i) {
    if (i >= same_.size()) same_.emplace_back();
    results_need_it_.push_back(needed_.count(forward_results_[i]) != 0 && !same_[i]);
  }
  return forward_results_.size() <= 64;
}

// Finds the operators that use each saved value.
void RegionPlan::findUses() {
  operators_ = std::make_unique<const GraphOperators>(*body_, forward_results_, needs());
  if (needed_at_first_) {
    at_first_ = std::make_unique<const GraphOperators>(
        *body_, forward_results_,
        [this](const Value* v) { return needed_at_first_->count(v) != 0; });
  }
  uses_ = std::make_unique<const SavedUses>(
      *operators_, saved_values_, [this](const Value* v) { return computedFrom(v); }, memoryOf);
}

}  // namespace wick::autograd
