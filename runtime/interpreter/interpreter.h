// Running Code. Most callers want runtime/call.h, which checks arguments first.
#pragma once

#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "core/ivalue.h"
#include "runtime/interpreter/code.h"

namespace wick {

class OperatorObserver;
class ThreadPool;

// What a run may use. Limits hold for the run together with everything that it forks.
struct RunOptions {
  // A step is an iteration of a loop or a call of a function, method or operator.
  uint64_t max_steps = std::numeric_limits<uint64_t>::max();
  // Nested calls of script functions.
  size_t max_depth = 2000;
  // Looked at between operators, and by loops over many elements within them.
  std::optional<std::chrono::steady_clock::time_point> deadline;
  // The run ends soon after this becomes true. Looked at where the deadline is.
  std::shared_ptr<const std::atomic<bool>> interrupt;
  // Bytes of tensors, containers, strings and objects that the run may hold at a time beyond what
  // there was when it began; 0: no limit.
  size_t max_memory = 0;
  // Where forks run; null: ThreadPool::global(). Must outlive the run and its forks.
  ThreadPool* pool = nullptr;
  // Owner of the code (the CompilationUnit): objects that the run creates hold it, and forks that
  // outlive the call.
  std::shared_ptr<void> owner;
  // Told of every operator call; null: nobody. Must outlive the run and its forks. Measuring costs
  // about 100 ns a call.
  OperatorObserver* observer = nullptr;
};

// Runs to the end on the calling thread, with all that it forked, and returns the output; a graph
// with several outputs gives a tuple, one without None. The arguments must be of the types of the
// graph's inputs. Throws
// RuntimeError with the script's call stack. `code` must live until the run ends.
//
// Where the options name no owner, `owner` may point to one that lives until this returns; the run
// copies it when it makes an object or forks. (All calls of a program share one count of owners.)
IValue runCode(const Code& code, std::vector<IValue> arguments, const RunOptions& options = {},
               const std::shared_ptr<void>* owner = nullptr);

// The same for the method of a module, whose first argument the caller lends: arguments[0] holds no
// reference of its own (IValue::borrow), and the module lives until this returns. None afterwards.
// code.keepsFirst() must hold.
IValue runCodeWithLentModule(const Code& code, std::vector<IValue>& arguments,
                             const RunOptions& options, const std::shared_ptr<void>* owner);

// The same for operators that call back into a script: under the limits of the run that called the
// operator on this thread, or none outside of a run.
IValue runCodeWithin(const Code& code, std::vector<IValue> arguments);

}  // namespace wick
