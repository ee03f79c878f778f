// The last part is as small as it may be: the pointwise operators between spare inputs and results of
// the same dtype and sizes, and what reads these. All that reads what the last part makes is in it.
#include "lazy/donation.h"

#include <algorithm>
#include <unordered_map>

#include "lazy/base.h"
#include "lazy/program.h"

namespace wick::lazy {

namespace {

// Whether the call does nothing but arithmetic, whatever the elements are. Arguments fit, or it would
// not have been recorded. Quotients and powers of integers may raise.
bool cannotFail(const Record& record) {
  if (record.loop) return false;
  const Operator& op = *record.op;
  if (!op.record().scalar || record.cloned != 0) return false;
  static const Symbol kMayRaise[] = {Symbol::aten("div"), Symbol::aten("floor_divide"),
                                     Symbol::aten("fmod"), Symbol::aten("remainder"),
                                     Symbol::aten("pow")};
  const bool plain_quotient =
      op.symbol() == kMayRaise[0] && !op.schema().overload().ends_with("_mode");
  return plain_quotient || std::ranges::find(kMayRaise, op.symbol()) == std::end(kMayRaise);
}

bool isLike(const Geometry& a, const Tensor& b) {
  return a.dtype == b.dtype() && std::ranges::equal(a.sizes, b.sizes());
}

}  // namespace

class Splitter {
 public:
  Splitter(const Graph& graph, const Graph::Plan& plan, const std::vector<bool>& spare,
           const Targets& targets)
      : graph_(graph),
        plan_(plan),
        spare_(spare),
        targets_(targets),
        late_(graph.records_.size()),
        last_(graph.records_.size()) {}

  Split run() {
    findLate();
    const std::unordered_map<ValueId, const Base*> wanted(targets_.begin(), targets_.end());
    for (const ValueId id : plan_.outputs) {
      const auto base = wanted.find(id);
      if (base != wanted.end()) tryTarget(id, base->second->layout());
    }
    takeReaders();
    return parts();
  }

 private:
  bool isInput(ValueId id) const { return graph_.origins_[id].record == Graph::kInput; }
  uint32_t madeBy(ValueId id) const { return graph_.origins_[id].record; }

  // Which records cannot fail, nor can anything that reads their values.
  void findLate() {
    std::vector<bool> read_early(graph_.records_.size());
    for (auto at = plan_.records.rbegin(); at != plan_.records.rend(); ++at) {
      late_[*at] = !read_early[*at] && cannotFail(graph_.records_[*at]);
      if (late_[*at]) continue;
      graph_.records_[*at].forValues([&](ValueId id) {
        if (!isInput(id)) read_early[madeBy(id)] = true;
      });
    }
  }

  // Takes what computes the output, if it may lie in an input's memory.
  void tryTarget(ValueId output, const Geometry& layout) {
    if (isInput(output) || !late_[madeBy(output)]) return;
    bool fits = false;
    std::vector<uint32_t> open = {madeBy(output)}, found;
    std::vector<bool> seen(graph_.records_.size());
    while (!open.empty()) {
      const uint32_t at = open.back();
      open.pop_back();
      if (seen[at]) continue;
      seen[at] = true;
      found.push_back(at);
      graph_.records_[at].forValues([&](ValueId id) {
        if (isInput(id)) {
          const uint32_t index = graph_.origins_[id].index;
          fits |= spare_[index] && isLike(layout, graph_.inputs_[index]);
        } else if (late_[madeBy(id)]) {
          open.push_back(madeBy(id));
        }
      });
    }
    if (!fits) return;
    for (const uint32_t at : found) last_[at] = true;
  }

  void takeReaders() {
    for (const uint32_t at : plan_.records) {
      graph_.records_[at].forValues([&](ValueId id) {
        if (!isInput(id) && last_[madeBy(id)]) last_[at] = true;
      });
    }
  }

  Split parts() const {
    Split made;
    std::vector<ValueId>& between = made.first.outputs;
    for (const uint32_t at : plan_.records) {
      (last_[at] ? made.last : made.first).records.push_back(at);
      if (!last_[at]) continue;
      graph_.records_[at].forValues([&](ValueId id) {
        if (!isInput(id) && !last_[madeBy(id)]) between.push_back(id);
      });
    }
    for (const ValueId id : plan_.outputs) {
      const bool is_last = !isInput(id) && last_[madeBy(id)];
      (is_last ? made.last : made.first).outputs.push_back(id);
    }
    std::ranges::sort(between);
    between.erase(std::ranges::unique(between).begin(), between.end());
    return made;
  }

  const Graph& graph_;
  const Graph::Plan& plan_;
  const std::vector<bool>& spare_;
  const Targets& targets_;
  std::vector<bool> late_, last_;
};

Split Program::split(const Graph& graph, const Graph::Plan& plan, const std::vector<bool>& spare,
                     const Targets& targets) {
  const bool any = std::ranges::any_of(spare, [](bool one) { return one; });
  if (!any) return {plan, {}};
  return Splitter(graph, plan, spare, targets).run();
}

}  // namespace wick::lazy
