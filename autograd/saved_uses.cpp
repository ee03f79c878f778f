#include "autograd/saved_uses.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "autograd/recorder.h"
#include "core/error.h"

namespace wick::autograd {

SavedUses::SavedUses(const GraphOperators& operators, std::vector<const Value*> values,
                     const std::function<std::vector<const Value*>(const Value*)>& inputs,
                     const std::function<const Value*(const Value*)>& memory)
    : operators_(operators) {
  std::unordered_map<const Value*, size_t> places, memories;
  for (size_t i = 0; i < values.size(); ++i) {
    uses_.push_back({values[i], {}, {}});
    places.emplace(values[i], i);
    memories.emplace(memory(values[i]), i);
  }
  for (size_t n = 0; n < operators.all().size(); ++n) {
    const GraphOperators::Operator& op = operators.all()[n];
    if (!op.keeps) continue;
    std::unordered_set<const Value*> seen;
    std::vector<const Value*> waiting = op.reads;
    while (!waiting.empty()) {
      const Value* v = waiting.back();
      waiting.pop_back();
      if (!seen.insert(v).second) continue;
      if (const auto found = places.find(v); found != places.end()) {
        uses_[found->second].readers.insert(n);
      } else {
        for (const Value* input : inputs(v)) waiting.push_back(input);
      }
    }
    for (const Value* v : op.reads) {
      const auto found = memories.find(memory(v));
      if (found != memories.end()) uses_[found->second].keepers.insert(n);
    }
  }
}

std::vector<size_t> SavedUses::keptBy(const OperatorSet& passed) const {
  std::vector<size_t> kept;
  for (size_t i = 0; i < uses_.size(); ++i) {
    if (uses_[i].keepers.meets(passed)) kept.push_back(i);
  }
  return kept;
}

void SavedUses::check(const OperatorSet& passed, const std::vector<size_t>& kept,
                      const OperatorSet& spent,
                      const std::function<const SavedValue*(size_t)>& saved) const {
  const std::optional<size_t> released = spent.lastIn(passed);
  std::optional<size_t> youngest;
  size_t at = 0;
  for (const size_t i : kept) {
    const SavedValue* value = saved(i);
    if (!value || !value->isStale()) continue;
    const std::optional<size_t> op = uses_[i].keepers.lastIn(passed);
    if (youngest && *op <= *youngest) continue;
    youngest = op;
    at = i;
  }
  if (youngest && (!released || *youngest > *released)) {
    const wick::Node* node = operators_.all()[*youngest].node;
    const bool own = node->outputs().size() == 1 && node->output() == uses_[at].value;
    saved(at)->check(own ? tapeName(*node->maybeOperator()) : "");
  }
  WICK_CHECK(!released, "{}", kAlreadyReleased);
}

void SavedOfGraph::release(const SavedUses& uses, const OperatorSet& passed,
                           std::vector<SavedValue>& dropped) {
  spent_.insert(passed);
  for (size_t i = 0; i < values_.size(); ++i) {
    if (!values_[i].isTensor() || !uses.readers(i).isWithin(spent_)) continue;
    dropped.push_back(values_[i].release());
  }
}

}  // namespace wick::autograd
