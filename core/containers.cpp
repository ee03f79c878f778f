// The heap objects behind values: lists, tuples, objects, futures. Dicts are in
// core/dict.cpp.
#include <condition_variable>
#include <mutex>

#include "core/error.h"
#include "core/ivalue.h"
#include "core/slot_access.h"

namespace wick {

void ListObject::grow(const char* op, size_t more) {
  WICK_CHECK(more <= kMaxListElements && elements.size() + more <= kMaxListElements,
             "{}: a list of {} elements is too long", op, elements.size() + more);
  const size_t capacity = std::max(elements.size() + more, 2 * elements.capacity());
  checkAllocation(op, capacity * sizeof(IValue));
  elements.reserve(capacity);
  count();
}

ListRef makeList(TypePtr element_type, std::vector<IValue> elements) {
  return makeRef<ListObject>(std::move(element_type), std::move(elements));
}

ListRef makeIntList(IntSpan values) {
  return makeList(types::Int(), std::vector<IValue>(values.begin(), values.end()));
}

ListRef makeTensorList(const std::vector<Tensor>& values) {
  return makeList(types::Tensor(), std::vector<IValue>(values.begin(), values.end()));
}

TupleRef makeTuple(std::vector<IValue> elements, std::shared_ptr<const TupleType> named) {
  return makeRef<TupleObject>(std::move(elements), std::move(named));
}

// ---- object ----

Object::Object(ClassTypePtr type, std::shared_ptr<void> owner)
    : type_(std::move(type)), owner_(std::move(owner)) {
  if (!type_) throwNoType("object");
  slots_.resize(type_->attributes().size());
  noteMemory(static_cast<int64_t>(slots_.size() * sizeof(IValue)));
}

Object::~Object() {
  if (threads_.several()) {
    for (const IValue& value : slots_) value.unpin();
  }
  noteMemory(-static_cast<int64_t>(slots_.size() * sizeof(IValue)));
}

void throwNoType(const char* object) {
  throw UsageError(fmt::format("expected the type of the {}, got null", object));
}

void Object::pinSlots() const {
  // Other threads may set slots meanwhile, so those that are to be looked at are held.
  std::vector<IValue> pending;
  const auto pinAll = [&](const Object& object) {
    for (const IValue& slot : object.slots_) {
      const SlotWriting writing(slot);
      const SlotView held(slot);
      const IValue& value = held.value();
      value.pin();
      // Modules may hold each other in a circle.
      if (value.isObject() && value.toObject().threads_.setSeveral()) pending.push_back(value);
    }
  };
  pinAll(*this);
  while (!pending.empty()) {
    const IValue next = std::move(pending.back());
    pending.pop_back();
    pinAll(next.toObject());
  }
}

void Object::throwNoSlot(size_t i) const {
  throw InternalError(
      __FILE__, __LINE__,
      fmt::format("object of '{}' has no slot {}", readableClassName(type_->name()), i));
}

void Object::setSlot(size_t i, IValue value) {
  if (i >= slots_.size()) {
    // The class may have gained attributes since the object was made.
    if (i >= type_->attributes().size()) throwNoSlot(i);
    noteMemory(static_cast<int64_t>((type_->attributes().size() - slots_.size()) * sizeof(IValue)));
    slots_.resize(type_->attributes().size());
  }
  bool alone = true;
  {
    const SlotWriting writing(slots_[i]);
    alone = writing.alone();
    SlotWriting::exchange(slots_[i], value);
    // The new value is not pinned: a program that sets an attribute in each call would pay for it.
    if (threads_.several() && value.isCounted() && value.rawObject()->isPinned()) value.unpin();
  }
  if (!alone && value.isCounted()) awaitSlotReaders();
}

const IValue& Object::attr(const std::string& name) const {
  auto slot = type_->findAttribute(name);
  WICK_CHECK(slot.has_value(), "'{}' object has no attribute '{}'",
             readableClassName(type_->name()), name);
  WICK_CHECK(*slot < slots_.size(), "'{}' object: attribute '{}' was never set",
             readableClassName(type_->name()), name);
  return slots_[*slot];
}

void Object::setAttr(const std::string& name, IValue value) {
  auto slot = type_->findAttribute(name);
  WICK_CHECK(slot.has_value(), "'{}' object has no attribute '{}'",
             readableClassName(type_->name()), name);
  setSlot(*slot, std::move(value));
}

// ---- future ----

struct FutureObject::State {
  mutable std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  IValue value;
  std::exception_ptr error;
  std::vector<std::function<void()>> callbacks;

  // `settle` stores the outcome; callbacks run without the lock, because they may ask the future.
  template <class F>
  void finish(F settle) {
    std::vector<std::function<void()>> due;
    {
      std::lock_guard lock(mutex);
      WICK_ASSERT(!done, "a future was completed twice");
      settle();
      done = true;
      due.swap(callbacks);
    }
    changed.notify_all();
    for (auto& callback : due) callback();
  }
};

FutureObject::FutureObject(TypePtr element_type, const void* run)
    : element_type(std::move(element_type)), run(run), state_(std::make_unique<State>()) {
  if (!this->element_type) throwNoType("future");
  noteMemory(sizeof(State));
}

FutureObject::~FutureObject() {
  noteMemory(-static_cast<int64_t>(sizeof(State)));
}

bool FutureObject::done() const {
  std::lock_guard lock(state_->mutex);
  return state_->done;
}

void FutureObject::complete(IValue value) {
  state_->finish([&] { state_->value = std::move(value); });
}

void FutureObject::fail(std::exception_ptr error) {
  state_->finish([&] { state_->error = std::move(error); });
}

void FutureObject::whenDone(std::function<void()> callback) {
  {
    std::lock_guard lock(state_->mutex);
    if (!state_->done) {
      state_->callbacks.push_back(std::move(callback));
      return;
    }
  }
  callback();
}

IValue FutureObject::wait() {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return state_->done; });
  if (state_->error) std::rethrow_exception(state_->error);
  return state_->value;
}

}  // namespace wick
