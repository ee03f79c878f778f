// How a run begins, goes on and ends: on its caller's thread and, for forks, on the pool's.
#include <array>

#include "core/memory_limit.h"
#include "runtime/executor/graph_executor.h"
#include "runtime/interpreter/interpreter_state.h"
#include "runtime/interpreter/run_owner.h"
#include "runtime/thread_pool.h"
#include "runtime/threads.h"

namespace wick {
namespace {

// What a forked function takes until it ends, for a program may fork without end. Counted where the
// run's budget is that of the thread, which is not so where states are made and destroyed.
constexpr int64_t kForkBytes =
    sizeof(InterpreterState) + RegisterStack::kInitialCapacity * sizeof(IValue) + 512;
// Runs within runs on one thread (an operator that calls a script method), which use the C++ stack.
constexpr int kMaxNestedRuns = 100;
thread_local int nested_runs = 0;
// What the innermost run on this thread may use.
thread_local const std::shared_ptr<RunContext>* running = nullptr;

struct Running {
  explicit Running(const std::shared_ptr<RunContext>& context)
      : before(std::exchange(running, &context)) {}
  ~Running() { running = before; }
  const std::shared_ptr<RunContext>* before;
};

// Runs a state with all that it forks.
IValue runWithForks(InterpreterState& state, RunContext& context) {
  IValue result;
  std::exception_ptr error;
  try {
    result = state.runToEnd();
  } catch (...) {
    context.side_forks.joinAll();
    if (!context.turns()) throw;
    error = std::current_exception();
  }
  context.side_forks.joinAll();
  if (context.turns()) context.awaitForks();
  if (error) std::rethrow_exception(error);
  return result;
}

}  // namespace

void InterpreterState::unwind(RuntimeError* error) {
  while (!frames_.empty()) {
    Frame frame = frames_.back();
    if (error) {
      size_t position = frame.pc == 0 ? 0 : frame.pc - 1;
      for (RuntimeError::Frame& f : frame.code->framesAt(position)) error->addFrame(std::move(f));
    }
    while (!entered_.empty() && entered_.back().depth == frames_.size()) {
      IValue object = std::move(entered_.back().object);
      entered_.pop_back();
      // An error on the way out does not replace the one that is being reported.
      try {
        const ClassType& type = *object.toObject().type();
        if (auto* method = dynamic_cast<GraphFunction*>(type.findMethod("__exit__"))) {
          std::array<IValue, 4> arguments{object};
          InterpreterState state(GraphExecutor::of(*method).code(), arguments, context_,
                                 depth_ + frames_.size());
          state.runToEnd();
        }
      } catch (const std::exception&) {
      }
    }
    destroyRegisters(frame);
    frames_.pop_back();
  }
}

void InterpreterState::unwindAndRethrow() {
  try {
    throw;
  } catch (const RuntimeError& error) {
    // A copy: the original may be the error of a future that several states read.
    RuntimeError traced = error;
    unwind(&traced);
    throw traced;
  } catch (const Error&) {
    unwind(nullptr);
    throw;
  } catch (const std::bad_alloc&) {
    RuntimeError traced("out of memory", "MemoryError");
    unwind(&traced);
    throw traced;
  } catch (const std::exception& error) {
    RuntimeError traced(error.what());
    unwind(&traced);
    throw traced;
  } catch (...) {
    unwind(nullptr);
    throw;
  }
}

IValue InterpreterState::runToEnd() {
  struct Nesting {
    Nesting() {
      WICK_CHECK(nested_runs < kMaxNestedRuns, "maximum recursion depth exceeded");
      ++nested_runs;
    }
    ~Nesting() { --nested_runs; }
  } nesting;
  applyNumThreads();
  Running now(context_);
  BudgetScope scope(context_->budget);
  try {
    execute();
  } catch (...) {
    unwindAndRethrow();
  }
  return std::move(result_);
}

FutureRef InterpreterState::launch(TypePtr result_type) {
  asynchronous_ = true;
  thread_context_ = threadContext();
  result_future_ = makeRef<FutureObject>(std::move(result_type), context_.get());
  FutureRef future = result_future_;
  context_->addRunning();
  noteMemory(kForkBytes);
  submitRest();
  return future;
}

void InterpreterState::submitRest() {
  context_->pool.submit([self = shared_from_this()](bool discarded) {
    if (!discarded) {
      self->continueOnPool();
      return;
    }
    // Who waits would wait forever, and keep what this run holds.
    self->result_future_->fail(std::make_exception_ptr(
        RuntimeError("the thread pool ended before the forked function did")));
    self->context_->removeRunning();
  });
}

void InterpreterState::continueOnPool() {
  // Held here: when nothing of the run runs any more, its caller goes on.
  const std::shared_ptr<RunContext> context = context_;
  applyNumThreads();
  // Settings of the thread belong to the run, wherever it continues.
  ThreadContextScope thread_context(thread_context_);
  // Ends before the run may end, and with it the budget.
  std::optional<BudgetScope> scope(std::in_place, context->budget);
  Running now(context);
  Turns& turns = *context->turns();
  turns.take();
  Status status = Status::Finished;
  std::exception_ptr error;
  try {
    try {
      status = execute();
    } catch (...) {
      unwindAndRethrow();
    }
  } catch (...) {
    error = std::current_exception();
  }
  turns.give();
  if (status == Status::Suspended) {
    scope.reset();
    context->suspend(shared_from_this(), std::move(waits_for_));
    return;
  }
  if (error) {
    result_future_->fail(error);
  } else {
    result_future_->complete(std::move(result_));
  }
  noteMemory(-kForkBytes);
  scope.reset();
  context->removeRunning();
}

void InterpreterState::failForever() {
  const std::shared_ptr<RunContext> context = context_;
  Turns& turns = *context->turns();
  turns.take();
  std::exception_ptr error;
  try {
    try {
      throw RuntimeError(std::string(RunContext::kWaitsForever));
    } catch (...) {
      unwindAndRethrow();
    }
  } catch (...) {
    error = std::current_exception();
  }
  turns.give();
  result_future_->fail(error);
  {
    BudgetScope scope(context->budget);
    noteMemory(-kForkBytes);
  }
  context->removeRunning();
}

IValue runCode(const Code& code, std::vector<IValue> arguments, const RunOptions& options,
               const std::shared_ptr<void>* owner) {
  const auto context = std::make_shared<RunContext>(options, owner);
  InterpreterState state(code, arguments, context, 0);
  return runWithForks(state, *context);
}

IValue runCodeWithLentModule(const Code& code, std::vector<IValue>& arguments,
                             const RunOptions& options, const std::shared_ptr<void>* owner) {
  WICK_ASSERT(code.keepsFirst(), "{} gives its module away", code.name());
  const auto context = std::make_shared<RunContext>(options, owner);
  InterpreterState state(code, arguments, context, 0, true);
  return runWithForks(state, *context);
}

std::shared_ptr<void> ownerOfRun() {
  return running ? (*running)->owner() : nullptr;
}

IValue runCodeWithin(const Code& code, std::vector<IValue> arguments) {
  if (!running) return runCode(code, std::move(arguments));
  const Turns::Inside inside;
  InterpreterState state(code, arguments, *running, 0);
  return state.runToEnd();
}

}  // namespace wick
