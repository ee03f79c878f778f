#include "passes/pipeline.h"

#include "passes/constant_propagation.h"
#include "passes/dead_code_elimination.h"
#include "passes/inline_calls.h"

namespace wick {

void runPipeline(Graph& graph) {
  inlineCalls(graph);
  propagateConstants(graph);
  eliminateDeadCode(graph);
}

}  // namespace wick
