// GraphExecutor: what the runtime attaches to a function in order to run it.
#pragma once

#include <mutex>

#include "ir/function.h"
#include "runtime/interpreter/code.h"

namespace wick {

// Optimizes a copy of the function's graph and lowers it when it is first run. Thread-safe; all
// threads share the result, which lives as long as the function.
class GraphExecutor {
 public:
  explicit GraphExecutor(GraphFunction& function) : function_(function) {}
  // The executor of a function, made when first asked for.
  static GraphExecutor& of(GraphFunction& function);

  // What runs. Compiles the function first when that has not happened: CompileError; RuntimeError
  // for a node that cannot run.
  const Code& code() {
    const Code* code = ready_.load(std::memory_order_acquire);
    return code ? *code : build();
  }
  GraphFunction& function() const { return function_; }

 private:
  const Code& build();
  GraphFunction& function_;
  std::atomic<const Code*> ready_{nullptr};
  std::mutex mutex_;
  std::shared_ptr<const Code> code_;
};

}  // namespace wick
