#include "runtime/interpreter/run_context.h"

#include <algorithm>
#include <utility>

#include "runtime/interpreter/interpreter_state.h"
#include "runtime/thread_pool.h"

namespace wick {

namespace {

// How long a function keeps its turn when others wait. Handing it on takes some ten microseconds.
constexpr auto kTurn = std::chrono::milliseconds(1);
// Elements on which an operator works for longer than it takes to hand on the turn.
constexpr int64_t kManyElements = 1 << 13;

// Whether an argument is a number, a text, a tensor, or a list of these.
bool isData(const IValue& value) {
  switch (value.tag()) {
    case IValue::Tag::Dict:
    case IValue::Tag::Object:
    case IValue::Tag::Future:
    case IValue::Tag::Generator:
    case IValue::Tag::Capsule:
      return false;
    case IValue::Tag::List:
    case IValue::Tag::Tuple:
      return std::ranges::all_of(value.elements(), [](const IValue& e) {
        return isData(e) && !e.isList() && !e.isTuple();
      });
    default:
      return true;
  }
}

}  // namespace

// ---- turns ----

void Turns::take(Lock& lock) {
  const uint64_t mine = next_ticket_++;
  if (mine != served_) {
    waiting_.fetch_add(1, std::memory_order_relaxed);
    changed_.wait(lock, [&] { return served_ == mine; });
    waiting_.fetch_sub(1, std::memory_order_relaxed);
  }
  taken_at_ = std::chrono::steady_clock::now();
}

void Turns::give(Lock&) {
  ++served_;
  changed_.notify_all();
}

void Turns::take() {
  Lock lock(mutex_);
  take(lock);
}

void Turns::give() {
  Lock lock(mutex_);
  give(lock);
}

void Turns::offer() {
  if (waiting_.load(std::memory_order_relaxed) == 0) return;
  if (std::chrono::steady_clock::now() - taken_at_ < kTurn) return;
  Lock lock(mutex_);
  give(lock);
  take(lock);
}

void Turns::Accesses::add(const IValue& value, bool writes) {
  if (value.isList()) {
    for (const IValue& element : value.elements()) add(element, writes);
  } else if (value.isTensor()) {
    const auto* tensor = static_cast<const TensorImpl*>(value.rawObject());
    accesses_.push_back({tensor, writes});
    // Who reads a tensor of several parts (core/tensor_kind.h) reads memory that is not named here,
    // and indices that must not change meanwhile.
    const bool has_parts = tensor->kind == TensorKind::Sparse || tensor->kind == TensorKind::Nested;
    accesses_.push_back({has_parts ? nullptr : tensor->storage.get(), writes || has_parts});
    elements_ += std::min(tensor->numel, kMaxElements - elements_);
    has_history_ |= tensor->requires_grad || tensor->history;
  }
}

bool Turns::Accesses::note(const Operator* op, uint64_t written, IValue* arguments, size_t count,
                           uint64_t& borrowed) {
  for (size_t i = 0; i < count; ++i) add(arguments[i], i >= 64 || (written >> i & 1) != 0);
  if (elements_ < kManyElements) return false;
  if (has_history_ && recordsGradients()) return false;
  if (notesViews() && op && op->makesViews()) return false;  // which notes what it is a view of
  if (std::ranges::any_of(accesses_, [](const Access& a) { return !a.memory; })) return false;
  // Whatever else writes to an argument may give it another shape, or is a container's operator.
  const bool only_elements = written == 0 || (op && op->form() == Operator::Form::Inplace);
  if (!only_elements || (op && (op->has(kSideEffects) || op->has(kNondeterministic))) ||
      !std::all_of(arguments, arguments + count, isData)) {
    return false;
  }
  for (size_t i = 0; i < count; ++i) {
    if (!arguments[i].isList()) continue;
    const ListObject& list = arguments[i].toList();
    IValue copy(makeList(list.element_type, list.elements));
    if (i < kMostBorrowed && (borrowed >> i & 1) != 0) {
      borrowed &= ~(uint64_t{1} << i);
      arguments[i].forget();
    }
    arguments[i] = std::move(copy);
  }
  return true;
}

bool Turns::Accesses::collideWith(const Accesses& other) const {
  return std::ranges::any_of(accesses_, [&](const Access& a) {
    return std::ranges::any_of(other.accesses_, [&](const Access& b) {
      const bool unknown = !a.memory || !b.memory;
      return (a.memory == b.memory || unknown) && (a.writes || b.writes);
    });
  });
}

void Turns::awaitNoCollision(const Accesses& accesses) {
  Lock lock(mutex_);
  const auto collides = [&] {
    return std::ranges::any_of(outside_,
                               [&](const Accesses* o) { return o->collideWith(accesses); });
  };
  while (collides()) {
    give(lock);
    changed_.wait(lock, [&] { return !collides(); });
    take(lock);
  }
}

namespace {

// The call outside of turns that the thread is within.
thread_local Turns::Outside* call_outside = nullptr;

}  // namespace

Turns::Outside::Outside(Turns& turns, const Accesses& accesses)
    : turns_(turns), accesses_(accesses) {
  call_outside = this;
  begin();
}

Turns::Outside::~Outside() {
  end();
  call_outside = nullptr;
}

void Turns::Outside::begin() {
  Lock lock(turns_.mutex_);
  turns_.outside_.push_back(&accesses_);
  turns_.give(lock);
}

void Turns::Outside::end() {
  Lock lock(turns_.mutex_);
  std::erase(turns_.outside_, &accesses_);
  turns_.changed_.notify_all();
  turns_.take(lock);
}

Turns::Inside::Inside() : outside_(std::exchange(call_outside, nullptr)) {
  if (outside_) outside_->end();
}

Turns::Inside::~Inside() {
  if (!outside_) return;
  outside_->turns_.awaitNoCollision(outside_->accesses_);
  outside_->begin();
  call_outside = outside_;
}

// ---- the run ----

RunContext::RunContext(const RunOptions& o, const std::shared_ptr<void>* owner)
    : options(o),
      own_budget({o.deadline, o.max_memory, o.interrupt}),
      budget(own_budget.bounded() ? &own_budget : currentBudget()),
      limited(budget || o.max_steps != std::numeric_limits<uint64_t>::max()),
      steps_left(o.max_steps),
      pool(o.pool ? *o.pool : ThreadPool::global()),
      callers_owner_(o.owner || !owner ? &options.owner : owner) {}

void RunContext::copyOwner() {
  std::lock_guard lock(mutex_);
  if (has_owner_.load(std::memory_order_relaxed)) return;
  // The pointer is the owner's, the count the copy's.
  if (const std::shared_ptr<void>& owner = *callers_owner_) {
    owner_ = {std::make_shared<std::shared_ptr<void>>(owner), owner.get()};
  }
  has_owner_.store(true, std::memory_order_release);
}

void RunContext::beginForks() {
  if (turns()) return;
  turns_.take();
  forked_.store(true, std::memory_order_release);
}

void RunContext::addRunning() {
  std::lock_guard lock(mutex_);
  ++running_;
}

void RunContext::removeRunning() {
  FutureRef ended;
  {
    std::lock_guard lock(mutex_);
    if (--running_ == 0) ended = std::move(all_ended_);
  }
  if (ended) ended->complete({});
}

// Somebody who waits for a future counts as running until the future knows of it, and again from
// the moment when the future is done, not only when a thread takes notice. Otherwise all would seem
// to wait for a moment.
struct RunContext::Wait {
  bool counts = true;
  bool over = false;  // the future is done
};

bool RunContext::beginWait(Wait& wait, const FutureObject& future, FutureRef& ended) {
  if (wait.over) return true;
  // Whoever completes the future counts as running until then.
  if (running_ == 1 && future.run == this && !future.done()) return false;
  wait.counts = false;
  if (--running_ == 0) ended = std::move(all_ended_);
  return true;
}

void RunContext::endWait(Wait& wait) {
  wait.over = true;
  if (!std::exchange(wait.counts, true)) ++running_;
}

void RunContext::await(FutureObject& future) {
  const auto wait = std::make_shared<Wait>();
  future.whenDone([context = shared_from_this(), wait] {
    std::lock_guard lock(context->mutex_);
    context->endWait(*wait);
  });
  FutureRef ended;
  {
    std::lock_guard lock(mutex_);
    WICK_CHECK(beginWait(*wait, future, ended), "{}", kWaitsForever);
  }
  struct Back {
    ~Back() {
      if (turns) turns->take();
      std::lock_guard lock(context.mutex_);
      context.endWait(wait);
    }
    RunContext& context;
    Wait& wait;
    Turns* turns;
  } back{*this, *wait, turns()};
  if (ended) ended->complete({});
  if (back.turns) back.turns->give();
  pool.runUntil(future, budget);
  if (!future.done()) budget->check();
}

void RunContext::suspend(std::shared_ptr<InterpreterState> state, FutureRef future) {
  InterpreterState* const key = state.get();
  const auto wait = std::make_shared<Wait>();
  {
    std::lock_guard lock(mutex_);
    suspended_.insert_or_assign(key, Suspended{std::move(state), wait});
  }
  // From the call on another thread may run the state.
  future->whenDone([context = shared_from_this(), key, wait] { context->resume(key, *wait); });
  FutureRef ended;
  std::shared_ptr<InterpreterState> forever;
  {
    std::lock_guard lock(mutex_);
    if (!beginWait(*wait, *future, ended)) {
      auto it = suspended_.find(key);
      forever = std::move(it->second.state);
      suspended_.erase(it);
    }
  }
  if (forever) forever->failForever();
  if (ended) ended->complete({});
}

void RunContext::resume(InterpreterState* state, Wait& wait) {
  std::shared_ptr<InterpreterState> held;
  {
    std::lock_guard lock(mutex_);
    auto it = suspended_.find(state);
    // It may have failed, and a later wait of the same state is none of this one's.
    if (it == suspended_.end() || it->second.wait.get() != &wait) return;
    held = std::move(it->second.state);
    suspended_.erase(it);
    endWait(wait);
  }
  held->submitRest();
}

void RunContext::awaitForks() {
  turns_.give();
  removeRunning();
  while (true) {
    FutureRef ended;
    std::shared_ptr<InterpreterState> forever;
    {
      std::lock_guard lock(mutex_);
      if (running_ > 0) {
        all_ended_ = ended = makeRef<FutureObject>(types::None());
      } else if (!suspended_.empty()) {
        forever = std::move(suspended_.begin()->second.state);
        suspended_.erase(suspended_.begin());
        ++running_;
      } else {
        return;
      }
    }
    if (forever) {
      forever->failForever();
    } else {
      pool.runUntil(*ended);
    }
  }
}

}  // namespace wick
