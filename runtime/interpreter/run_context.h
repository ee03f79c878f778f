// RunContext: what a run shares with the functions that it forks.
//
// Forked functions share lists, dicts, objects and tensors with whoever forked them, and none of
// these is synchronized. So the functions of one run take turns: one of them executes its script,
// while others may be inside of an operator that works on tensors for long. What such an operator
// reads and writes is known, and an operator that would collide with it waits. A program can
// therefore race for who comes first, never for memory.
#pragma once

#include <condition_variable>
#include <mutex>
#include <unordered_map>

#include "core/budget.h"
#include "ir/operator.h"
#include "runtime/interpreter/interpreter.h"
#include "runtime/interpreter/side_forks.h"

namespace wick {

class InterpreterState;

// The turns of one run. All functions are thread-safe.
class Turns {
 public:
  // Waits until no other thread has the turn.
  void take();
  void give();
  // Lets another thread have the turn when one waits and this one has had it for some time.
  // Some nanoseconds when nobody waits.
  void offer();

  // The tensors that a call reads and writes.
  class Accesses {
   public:
    // Notes what a call of the operator (null: of a group) does with its arguments. Bit i of
    // `written`: it writes to argument i. Whether the call may and should go on without the turn:
    // it works on many elements, changes no tensor but in its elements, and knows of nothing else
    // that is shared. A call that is recorded for gradients keeps the turn: recording changes what
    // tensors know of where they come from. Lists among its arguments are replaced by copies then. Bit i of `borrowed`:
    // argument i holds no reference of its own (ir/operator.h); cleared where it was replaced.
    bool note(const Operator* op, uint64_t written, IValue* arguments, size_t count,
              uint64_t& borrowed);
    bool collideWith(const Accesses& other) const;

   private:
    void add(const IValue& value, bool writes);
    struct Access {
      const void* memory;  // a TensorImpl or a Storage; only compared
      bool writes;
    };
    std::vector<Access> accesses_;
    int64_t elements_ = 0;
    bool has_history_ = false;  // a tensor requires a gradient or comes from one that does
  };
  // Called with the turn, which the thread gives away while it waits: returns, with the turn, when
  // no call that is under way outside of turns collides.
  void awaitNoCollision(const Accesses& accesses);
  class Inside;
  // A call that runs without the turn, from construction to destruction, at both of which the
  // thread has it. Nothing under way may collide.
  class Outside {
   public:
    Outside(Turns& turns, const Accesses& accesses);
    ~Outside();
    Outside(const Outside&) = delete;
    Outside& operator=(const Outside&) = delete;

   private:
    friend class Inside;
    void begin();  // gives the turn away
    void end();    // takes it again
    Turns& turns_;
    const Accesses& accesses_;
  };
  // What a call outside of turns runs of script code, as derivatives do: with the turn, as all
  // script code. Does nothing on a thread without such a call.
  class Inside {
   public:
    Inside();
    ~Inside();
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    Outside* const outside_;
  };

 private:
  using Lock = std::unique_lock<std::mutex>;
  void take(Lock& lock);
  void give(Lock& lock);

  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t next_ticket_ = 0;  // of who asks
  uint64_t served_ = 0;       // has the turn, or may take it
  std::atomic<uint32_t> waiting_{0};
  std::chrono::steady_clock::time_point taken_at_;
  std::vector<const Accesses*> outside_;
};

struct RunContext : std::enable_shared_from_this<RunContext> {
  // `owner` as for runCode().
  explicit RunContext(const RunOptions& options, const std::shared_ptr<void>* owner = nullptr);

  // What objects that the run makes hold, and forks: the owner of the code, with a count of this
  // run's own. First called while the run's caller waits for it.
  const std::shared_ptr<void>& owner() {
    if (!has_owner_.load(std::memory_order_acquire)) copyOwner();
    return owner_;
  }

  RunOptions options;
  Budget own_budget;
  Budget* const budget;  // the run's own, or that of the caller's thread; may be null
  bool limited;          // any limit but the depth
  std::atomic<uint64_t> steps_left;
  ThreadPool& pool;

  // ---- forks ----

  // Null until the run forks for the first time.
  Turns* turns() { return forked_.load(std::memory_order_acquire) ? &turns_ : nullptr; }
  // Called by the first fork, on the thread of the run, which has the turn from then on.
  void beginForks();
  // A forked function begins to count as running.
  void addRunning();
  // It has ended.
  void removeRunning();
  // Returns when the future is done, on a thread that waits for it or helps the pool meanwhile.
  // Gives the turn away for that time. RuntimeError when it would be for ever (nobody else runs,
  // and the future is one of this run) and when the budget is exhausted.
  void await(FutureObject& future);
  // A function that waits without a thread. Resumed with continueOnPool() when the future is done.
  void suspend(std::shared_ptr<InterpreterState> state, FutureRef future);
  // Called at the end of the run, by the thread that called beginForks(): gives its turn, and
  // returns when nothing of it runs any more. What waits for ever fails.
  void awaitForks();

  // Those whose work a device does beside other work. Of the thread that began the run.
  SideForks side_forks;

  static constexpr std::string_view kWaitsForever =
      "wait: this would never end, for every function of the run waits for another";

 private:
  struct Wait;
  struct Suspended {
    std::shared_ptr<InterpreterState> state;
    std::shared_ptr<Wait> wait;
  };
  // Both with the mutex. False when the wait would be for ever. `ended` is to be completed without
  // the mutex.
  bool beginWait(Wait& wait, const FutureObject& future, FutureRef& ended);
  void endWait(Wait& wait);
  void resume(InterpreterState* state, Wait& wait);
  void copyOwner();

  const std::shared_ptr<void>* const callers_owner_;
  std::atomic<bool> has_owner_{false};
  std::shared_ptr<void> owner_;
  std::atomic<bool> forked_{false};
  Turns turns_;
  std::mutex mutex_;
  size_t running_ = 1;   // functions that neither wait nor have ended
  FutureRef all_ended_;  // completed when nothing runs; null while nobody waits for that
  std::unordered_map<InterpreterState*, Suspended> suspended_;
};

}  // namespace wick
