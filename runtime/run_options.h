// What callers say of a run besides the arguments.
#pragma once

#include <atomic>
#include <chrono>
#include <concepts>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/ivalue.h"

#pragma GCC visibility push(default)

namespace wick {

class OperatorObserver;
class ThreadPool;

// Arguments by name.
using Kwargs = std::vector<std::pair<std::string, IValue>>;

// One of them in a braced list: model({{"x", x}, {"threshold", 0.3}}).
struct NamedArgument {
  template <std::convertible_to<std::string_view> Name>
  NamedArgument(const Name& its_name, IValue its_value)
      : name(std::string_view(its_name)), value(std::move(its_value)) {}
  std::string name;
  IValue value;
};
// They come before arguments by position where both would fit.
using NamedArguments = std::initializer_list<NamedArgument>;
Kwargs toKwargs(NamedArguments named);

// What a run may use. Limits hold for the run together with everything that it forks, and with
// compiling what it is the first to call.
struct RunOptions {
  // A step is an iteration of a loop or a call of a function, method or operator.
  uint64_t max_steps = std::numeric_limits<uint64_t>::max();
  // Nested calls of script functions.
  size_t max_depth = 2000;
  // Looked at between operators, and by loops over many elements within them.
  std::optional<std::chrono::steady_clock::time_point> deadline{};
  // The run ends soon after this becomes true. Looked at where the deadline is.
  std::shared_ptr<const std::atomic<bool>> interrupt{};
  // Bytes of tensors, containers, strings and objects that the run may hold at a time beyond what
  // there was when it began; 0: no limit.
  size_t max_memory = 0;
  // Where forks run; null: ThreadPool::global(). Must outlive the run and its forks.
  ThreadPool* pool = nullptr;
  // Owner of the code (the CompilationUnit): objects that the run creates hold it, and forks that
  // outlive the call.
  std::shared_ptr<void> owner{};
  // Told of every operator call; null: nobody. Must outlive the run and its forks. Measuring costs
  // about 100 ns a call. Profile (runtime/profile.h) is one.
  OperatorObserver* observer = nullptr;
};

}  // namespace wick

#pragma GCC visibility pop
