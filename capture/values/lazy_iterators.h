// The iterators of `itertools`, which take elements from others when they are asked.
#pragma once

#include <memory>

#include "capture/values/iterators.h"

namespace wick::capture {

// An iterator whose class is one of itertools.
class LazyIterator : public IteratorVariable {
 public:
  explicit LazyIterator(const char* name) : name_(name) {}
  PyTypeObject* type() const override;

 private:
  const char* name_;
};

class CountIterator : public LazyIterator {
 public:
  CountIterator(Variable* start, Variable* step)
      : LazyIterator("count"), next_(start), step_(step) {}
  Variable* next(Capture& capture) override;

 private:
  Variable *next_, *step_;
};

class CycleIterator : public LazyIterator {
 public:
  explicit CycleIterator(Variable* iterator) : LazyIterator("cycle"), iterator_(iterator) {}
  Variable* next(Capture& capture) override;

 private:
  Variable* iterator_;
  std::vector<Variable*> saved_;
  bool ended_ = false;
  size_t at_ = 0;
};

class RepeatIterator : public LazyIterator {
 public:
  // Without end if `times` is negative.
  RepeatIterator(Variable* element, int64_t times)
      : LazyIterator("repeat"), element_(element), left_(times) {}
  Variable* next(Capture& capture) override;

 private:
  Variable* element_;
  int64_t left_;
};

class SliceIterator : public LazyIterator {
 public:
  // Without end if `stop` is negative.
  SliceIterator(Variable* iterator, int64_t start, int64_t stop, int64_t step)
      : LazyIterator("islice"), iterator_(iterator), wanted_(start), stop_(stop), step_(step) {}
  Variable* next(Capture& capture) override;

 private:
  Variable* iterator_;  // null: at the end
  int64_t wanted_, stop_, step_;
  int64_t taken_ = 0;
};

class AccumulateIterator : public LazyIterator {
 public:
  // `function` and `initial` may be null.
  AccumulateIterator(Variable* iterator, Variable* function, Variable* initial)
      : LazyIterator("accumulate"), iterator_(iterator), function_(function), initial_(initial) {}
  Variable* next(Capture& capture) override;

 private:
  Variable *iterator_, *function_, *initial_;
  Variable* total_ = nullptr;
};

// Elements that a function of each decides about.
class SelectingIterator : public LazyIterator {
 public:
  enum class Kind : uint8_t { kTakeWhile, kDropWhile, kFilterFalse, kStarMap };
  SelectingIterator(Kind kind, Variable* function, Variable* iterator);
  Variable* next(Capture& capture) override;

 private:
  bool holds(Capture& capture, Variable* element);

  Kind kind_;
  Variable *function_, *iterator_;
  bool switched_ = false;  // takewhile has ended, dropwhile drops no more
};

class CompressIterator : public LazyIterator {
 public:
  CompressIterator(Variable* data, Variable* selectors)
      : LazyIterator("compress"), data_(data), selectors_(selectors) {}
  Variable* next(Capture& capture) override;

 private:
  Variable *data_, *selectors_;
};

class PairwiseIterator : public LazyIterator {
 public:
  explicit PairwiseIterator(Variable* iterator) : LazyIterator("pairwise"), iterator_(iterator) {}
  Variable* next(Capture& capture) override;

 private:
  Variable* iterator_;  // null: at the end
  Variable* before_ = nullptr;
};

class ZipLongestIterator : public LazyIterator {
 public:
  ZipLongestIterator(std::vector<Variable*> iterators, Variable* fill)
      : LazyIterator("zip_longest"),
        iterators_(std::move(iterators)),
        fill_(fill),
        active_(iterators_.size()) {}
  Variable* next(Capture& capture) override;

 private:
  std::vector<Variable*> iterators_;  // null: at its end
  Variable* fill_;
  size_t active_;
};

// chain() and chain.from_iterable().
class ChainIterator : public LazyIterator {
 public:
  explicit ChainIterator(Variable* iterables) : LazyIterator("chain"), iterables_(iterables) {}
  Variable* next(Capture& capture) override;

 private:
  Variable* iterables_;  // an iterator; null: at the end
  Variable* active_ = nullptr;
};

// product(), permutations() and combinations(): `indices` is the iterator itself, over numbers
// instead of elements. Element i of a tuple comes from pool i, the first one behind the last.
class PoolIterator : public LazyIterator {
 public:
  PoolIterator(const char* name, Object indices, std::vector<std::vector<Variable*>> pools)
      : LazyIterator(name), indices_(std::move(indices)), pools_(std::move(pools)) {}
  Variable* next(Capture& capture) override;

 private:
  Object indices_;
  std::vector<std::vector<Variable*>> pools_;
};

// tee(): several iterators over the elements that the first of them to need one takes.
class TeeIterator : public LazyIterator {
 public:
  struct Shared {
    Variable* iterator;
    std::vector<Variable*> taken;
  };
  TeeIterator(std::shared_ptr<Shared> shared, size_t at)
      : LazyIterator("_tee"), shared_(std::move(shared)), at_(at) {}
  Variable* next(Capture& capture) override;
  Variable* callMethod(Capture& capture, const std::string& name, const Arguments& given) override;
  IteratorVariable* copy(Capture& capture) const override;

 private:
  std::shared_ptr<Shared> shared_;
  size_t at_;
};

class GroupIterator;

class GroupByIterator : public LazyIterator {
 public:
  // `key` may be null.
  GroupByIterator(Variable* iterator, Variable* key)
      : LazyIterator("groupby"), iterator_(iterator), key_(key) {}
  Variable* next(Capture& capture) override;
  // Returns the next element of the group, or null at its end.
  Variable* nextOfGroup(Capture& capture, const GroupIterator* group, Variable* group_key);

 private:
  bool advance(Capture& capture);

  Variable *iterator_, *key_;
  Variable *value_ = nullptr, *value_key_ = nullptr, *target_key_ = nullptr;
  const GroupIterator* group_ = nullptr;  // the last one
};

class GroupIterator : public LazyIterator {
 public:
  GroupIterator(GroupByIterator* parent, Variable* key)
      : LazyIterator("_grouper"), parent_(parent), key_(key) {}
  Variable* next(Capture& capture) override { return parent_->nextOfGroup(capture, this, key_); }

 private:
  GroupByIterator* parent_;
  Variable* key_;
};

}  // namespace wick::capture
