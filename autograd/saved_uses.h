// Which operators of a graph that is one node of the tape use each value that a call of it saves.
#pragma once

#include <functional>
#include <vector>

#include "autograd/graph_operators.h"
#include "autograd/saved_value.h"

namespace wick::autograd {

class SavedUses {
 public:
  // `values`: the saved ones. `inputs`: from what a value that is not saved is computed again; nullopt
  // where it takes nothing that a call saves. `memory`: the value whose memory a value has.
  SavedUses(const GraphOperators& operators, std::vector<const Value*> values,
            const std::function<std::vector<const Value*>(const Value*)>& inputs,
            const std::function<const Value*(const Value*)>& memory);

  // Returns the operators whose gradients are computed from saved value i.
  const OperatorSet& readers(size_t i) const { return uses_[i].readers; }
  // Returns the saved values whose memory the tape would have kept for the operators of a walk.
  std::vector<size_t> keptBy(const OperatorSet& passed) const;

  // Raises what the tape raises, by its youngest operator that has something to raise: that it let go
  // of what it kept, or that this was written to. `saved` gives a saved value, or null when it is gone.
  void check(const OperatorSet& passed, const std::vector<size_t>& kept, const OperatorSet& spent,
             const std::function<const SavedValue*(size_t)>& saved) const;

 private:
  struct Use {
    const Value* value;
    OperatorSet readers;
    OperatorSet keepers;
  };
  const GraphOperators& operators_;
  std::vector<Use> uses_;
};

// The values that one call of a graph saves, and the operators that have let go of theirs. Thread-safe.
class SavedOfGraph {
 public:
  explicit SavedOfGraph(size_t count) : values_(count) {}
  size_t size() const { return values_.size(); }
  size_t bytes() const { return values_.capacity() * sizeof(SavedValue); }
  // While the node is made.
  void set(size_t i, SavedValue value) { values_[i] = std::move(value); }

  // The operators that a walk comes through, and the values of SavedUses::keptBy().
  struct Passage {
    OperatorSet passed;
    std::vector<size_t> kept;
  };
  // Calls `f` with a function that gives value i as SavedValue::unpack() does, after the check. `last`:
  // the operators let go of what they kept.
  template <class F>
  void read(Node& node, const SavedUses& uses, const Passage& passage, bool last, F&& f) {
    std::vector<SavedValue> dropped;  // without the mutex
    const std::lock_guard lock(mutex_);
    uses.check(passage.passed, passage.kept, spent_,
               [&](size_t i) { return values_[i].isReleased() ? nullptr : &values_[i]; });
    f([&](size_t i) { return values_[i].unpack(node); });
    if (last) release(uses, passage.passed, dropped);
  }

 private:
  void release(const SavedUses& uses, const OperatorSet& passed, std::vector<SavedValue>& dropped);

  std::mutex mutex_;
  std::vector<SavedValue> values_;
  OperatorSet spent_;
};

}  // namespace wick::autograd
