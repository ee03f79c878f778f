#include "capture/values/lazy_iterators.h"

#include "capture/evaluate/capture.h"
#include "capture/evaluate/protocol.h"
#include "capture/values/constant.h"
#include "capture/values/sequence.h"

namespace wick::capture {
namespace {

constexpr int kPlus = 0;  // of BINARY_OP

const char* nameOfKind(SelectingIterator::Kind kind) {
  switch (kind) {
    case SelectingIterator::Kind::kTakeWhile:
      return "takewhile";
    case SelectingIterator::Kind::kDropWhile:
      return "dropwhile";
    case SelectingIterator::Kind::kFilterFalse:
      return "filterfalse";
    case SelectingIterator::Kind::kStarMap:
      break;
  }
  return "starmap";
}

}  // namespace

PyTypeObject* LazyIterator::type() const {
  return reinterpret_cast<PyTypeObject*>(libraryObject("itertools", name_));
}

Variable* CountIterator::next(Capture& capture) {
  Variable* const found = next_;
  next_ = binary(capture, kPlus, next_, step_);
  return found;
}

Variable* CycleIterator::next(Capture& capture) {
  if (!ended_) {
    if (Variable* found = nextOf(capture, iterator_)) {
      saved_.push_back(found);
      return found;
    }
    ended_ = true;
  }
  if (saved_.empty()) return nullptr;
  Variable* const found = saved_[at_];
  at_ = (at_ + 1) % saved_.size();
  return found;
}

Variable* RepeatIterator::next(Capture&) {
  if (left_ == 0) return nullptr;
  if (left_ > 0) --left_;
  return element_;
}

Variable* SliceIterator::next(Capture& capture) {
  if (!iterator_) return nullptr;
  const auto take = [&]() -> Variable* {
    Variable* const found = nextOf(capture, iterator_);
    if (found) ++taken_;
    if (!found) iterator_ = nullptr;
    return found;
  };
  while (taken_ < wanted_) {
    if (!take()) return nullptr;
  }
  if (stop_ >= 0 && taken_ >= stop_) {
    iterator_ = nullptr;
    return nullptr;
  }
  Variable* const found = take();
  if (!found) return nullptr;
  const int64_t before = wanted_;
  wanted_ = static_cast<int64_t>(static_cast<uint64_t>(wanted_) + static_cast<uint64_t>(step_));
  if (wanted_ < before || (stop_ >= 0 && wanted_ > stop_)) wanted_ = stop_;
  return found;
}

Variable* AccumulateIterator::next(Capture& capture) {
  if (initial_) return total_ = std::exchange(initial_, nullptr);
  Variable* const element = nextOf(capture, iterator_);
  if (!element) return nullptr;
  if (!total_) {
    total_ = element;
  } else if (function_) {
    total_ = callVariable(capture, function_, {{total_, element}, {}});
  } else {
    total_ = binary(capture, kPlus, total_, element);
  }
  return total_;
}

// ---- elements that functions choose ----

SelectingIterator::SelectingIterator(Kind kind, Variable* function, Variable* iterator)
    : LazyIterator(nameOfKind(kind)), kind_(kind), function_(function), iterator_(iterator) {}

bool SelectingIterator::holds(Capture& capture, Variable* element) {
  PyObject* const function = capture.use(function_)->constant();
  const bool truth = kind_ == Kind::kFilterFalse &&
                     (function == Py_None || function == reinterpret_cast<PyObject*>(&PyBool_Type));
  return truthOf(capture, truth ? element : callVariable(capture, function_, {{element}, {}}));
}

Variable* SelectingIterator::next(Capture& capture) {
  if (kind_ == Kind::kTakeWhile && switched_) return nullptr;
  while (Variable* element = nextOf(capture, iterator_)) {
    switch (kind_) {
      case Kind::kStarMap:
        return callVariable(capture, function_, {elementsOf(capture, element), {}});
      case Kind::kFilterFalse:
        if (!holds(capture, element)) return element;
        break;
      case Kind::kDropWhile:
        if (!switched_ && holds(capture, element)) break;
        switched_ = true;
        return element;
      case Kind::kTakeWhile:
        if (holds(capture, element)) return element;
        switched_ = true;
        return nullptr;
    }
  }
  return nullptr;
}

Variable* CompressIterator::next(Capture& capture) {
  for (;;) {
    Variable* const element = nextOf(capture, data_);
    if (!element) return nullptr;
    Variable* const selector = nextOf(capture, selectors_);
    if (!selector) return nullptr;
    if (truthOf(capture, selector)) return element;
  }
}

// ---- several at once ----

Variable* PairwiseIterator::next(Capture& capture) {
  if (!iterator_) return nullptr;
  if (!before_) before_ = nextOf(capture, iterator_);
  Variable* const after = before_ ? nextOf(capture, iterator_) : nullptr;
  if (!after) {
    iterator_ = nullptr;
    return nullptr;
  }
  std::vector<Variable*> both{std::exchange(before_, after), after};
  return capture.make<TupleVariable>(std::move(both), &PyTuple_Type);
}

Variable* ZipLongestIterator::next(Capture& capture) {
  if (active_ == 0) return nullptr;
  std::vector<Variable*> elements;
  for (Variable*& iterator : iterators_) {
    Variable* found = iterator ? nextOf(capture, iterator) : nullptr;
    if (!found) {
      if (iterator && --active_ == 0) return nullptr;
      iterator = nullptr;
      found = fill_;
    }
    elements.push_back(found);
  }
  return capture.make<TupleVariable>(std::move(elements), &PyTuple_Type);
}

Variable* ChainIterator::next(Capture& capture) {
  while (iterables_) {
    if (!active_) {
      Variable* const iterable = nextOf(capture, iterables_);
      if (iterable) active_ = iterate_(capture, iterable);
      if (!iterable) iterables_ = nullptr;
      continue;
    }
    if (Variable* found = nextOf(capture, active_)) return found;
    active_ = nullptr;
  }
  return nullptr;
}

Variable* PoolIterator::next(Capture& capture) {
  const Object indices = Object::own(PyIter_Next(indices_.get()));
  if (!indices) {
    if (PyErr_Occurred()) throw PythonError();
    return nullptr;
  }
  std::vector<Variable*> chosen;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(indices.get()); ++i) {
    const size_t at = PyLong_AsSize_t(PyTuple_GET_ITEM(indices.get(), i));
    chosen.push_back(pools_[static_cast<size_t>(i) % pools_.size()].at(at));
  }
  return capture.make<TupleVariable>(std::move(chosen), &PyTuple_Type);
}

// ---- tee ----

Variable* TeeIterator::next(Capture& capture) {
  if (at_ >= shared_->taken.size()) {
    Variable* const found = nextOf(capture, shared_->iterator);
    if (!found) return nullptr;
    shared_->taken.push_back(found);
  }
  return shared_->taken[at_++];
}

IteratorVariable* TeeIterator::copy(Capture& capture) const {
  return capture.make<TeeIterator>(shared_, at_);
}

Variable* TeeIterator::callMethod(Capture& capture, const std::string& name,
                                  const Arguments& given) {
  return name == "__copy__" && given.empty() ? copy(capture) : nullptr;
}

// ---- groupby ----

bool GroupByIterator::advance(Capture& capture) {
  Variable* const found = nextOf(capture, iterator_);
  if (!found) return false;
  Variable* const key = key_ ? callVariable(capture, key_, {{found}, {}}) : found;
  value_ = found;
  value_key_ = key;
  return true;
}

Variable* GroupByIterator::next(Capture& capture) {
  group_ = nullptr;
  while (!value_key_ || (target_key_ && isEqual(capture, target_key_, value_key_))) {
    if (!advance(capture)) return nullptr;
  }
  target_key_ = value_key_;
  auto* const group = capture.make<GroupIterator>(this, target_key_);
  group_ = group;
  return capture.make<TupleVariable>(std::vector<Variable*>{target_key_, group}, &PyTuple_Type);
}

Variable* GroupByIterator::nextOfGroup(Capture& capture, const GroupIterator* group,
                                       Variable* group_key) {
  if (group_ != group) return nullptr;
  if (!value_ && !advance(capture)) return nullptr;
  if (!isEqual(capture, group_key, value_key_)) return nullptr;
  return std::exchange(value_, nullptr);
}

}  // namespace wick::capture
