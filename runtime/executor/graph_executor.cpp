#include "runtime/executor/graph_executor.h"

#include "passes/pipeline.h"
#include "runtime/object_order.h"

namespace wick {

GraphExecutor& GraphExecutor::of(GraphFunction& function) {
  auto attached = function.attachment([&] { return std::make_shared<GraphExecutor>(function); });
  return *static_cast<GraphExecutor*>(attached.get());
}

const Code& GraphExecutor::build() {
  std::lock_guard lock(mutex_);
  if (!code_) {
    function_.ensureDefined();
    std::shared_ptr<Graph> graph = function_.graph()->copy();
    runPipeline(*graph);
    installObjectOrder();
    code_ = Code::build(std::move(graph), function_.name());
    ready_.store(code_.get(), std::memory_order_release);
  }
  return *code_;
}

}  // namespace wick
