#include "autograd/shared_results.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "autograd/formula_graph.h"
#include "autograd/gradients.h"
#include "autograd/saved_value.h"
#include "core/error.h"

namespace wick::autograd {

namespace {

// Whether the node's gradient reads the elements of its arguments or of its result.
bool keepsSomething(const wick::Node* node, const std::function<bool(const Value*)>& needs) {
  const Operator* op = node->maybeOperator();
  if (!op || ruleOf(*op).kind() != Rule::Kind::Formula) return false;
  uint64_t wanted = 0;
  for (size_t i = 0; i < node->inputs().size() && i < 64; ++i) {
    if (needs(node->input(i))) wanted |= uint64_t{1} << i;
  }
  wanted &= coveredInputs(ruleOf(*op), node);
  if (wanted == 0) return false;
  using Source = GradientFunction::Source;
  return std::ranges::any_of(ruleOf(*op).gradients(wanted).sources, [&](const Source& source) {
    if (source.part != Source::Part::Value) return false;
    if (source.kind == Source::Kind::Result) return true;
    return source.kind == Source::Kind::Argument &&
           node->input(source.index)->type()->kind() == TypeKind::Tensor;
  });
}

// Finds the nodes that keep something among those that the gradient of a value goes through.
class Keepers {
 public:
  Keepers(std::span<const Value* const> results, const std::function<bool(const Value*)>& needs,
          size_t carried)
      : results_(results), needs_(needs), carried_(carried) {}

  std::unordered_set<const wick::Node*> of(const Value* result) {
    std::unordered_set<const Value*> seen;
    std::unordered_set<const wick::Node*> found;
    std::vector<const Value*> waiting = {result};
    while (!waiting.empty()) {
      const Value* v = waiting.back();
      waiting.pop_back();
      if (!needs_(v) || !seen.insert(v).second) continue;
      const wick::Node* node = v->node();
      if (node->kind() == prim::Param) {
        const size_t at = v->offset();
        if (at > 0 && at <= carried_) waiting.push_back(results_[at - 1]);
        continue;
      }
      if (keeps(node)) found.insert(node);
      for (const Value* input : node->inputs()) waiting.push_back(input);
    }
    return found;
  }

 private:
  bool keeps(const wick::Node* node) {
    const auto [known, added] = keeps_.try_emplace(node, false);
    if (added) known->second = keepsSomething(node, needs_);
    return known->second;
  }

  const std::span<const Value* const> results_;
  const std::function<bool(const Value*)>& needs_;
  const size_t carried_;
  std::unordered_map<const wick::Node*, bool> keeps_;
};

}  // namespace

SharedResults::SharedResults(std::span<const Value* const> results,
                             const std::function<bool(const Value*)>& needs, size_t carried) {
  if (results.size() > 64) {
    shared_.assign(64, ~uint64_t{0});
    keeping_ = ~uint64_t{0};
    return;
  }
  Keepers all(results, needs, carried);
  std::vector<std::unordered_set<const wick::Node*>> keepers;
  for (const Value* v : results) keepers.push_back(all.of(v));
  shared_.resize(results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    if (!keepers[i].empty()) keeping_ |= uint64_t{1} << i;
    for (size_t j = 0; j < results.size(); ++j) {
      const bool share = std::ranges::any_of(
          keepers[i], [&](const wick::Node* node) { return keepers[j].count(node) != 0; });
      if (share) shared_[i] |= uint64_t{1} << j;
    }
  }
}

uint64_t SharedResults::sharedBy(uint64_t results) const {
  uint64_t shared = 0;
  for (size_t i = 0; i < shared_.size(); ++i) {
    if (results >> i & 1) shared |= shared_[i];
  }
  return shared;
}

void SpentResults::check(uint64_t results) const {
  WICK_CHECK((spent_.load() & results) == 0, "{}", kAlreadyReleased);
}

bool SpentResults::spend(const SharedResults& shared, uint64_t results) {
  const uint64_t now = shared.sharedBy(results);
  return ((spent_.fetch_or(now) | now) & shared.keeping()) == shared.keeping();
}

}  // namespace wick::autograd
