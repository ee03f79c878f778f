#include "runtime/inference.h"

#include "core/error.h"
#include "core/parallel.h"
#include "passes/autocast.h"
#include "passes/common_subexpressions.h"
#include "passes/constant_pooling.h"
#include "passes/constant_propagation.h"
#include "passes/dead_code_elimination.h"
#include "passes/erase_shape_computations.h"
#include "passes/eval_mode.h"
#include "passes/fold_scales.h"
#include "passes/form_linears.h"
#include "passes/freeze.h"
#include "passes/fuse_epilogues.h"
#include "passes/inline_calls.h"
#include "passes/join_linears.h"
#include "passes/lower_tuples.h"
#include "passes/peephole.h"
#include "passes/raised_conditions.h"
#include "passes/remove_mutation.h"
#include "passes/restore_operators.h"
#include "passes/unroll_loops.h"
#include "runtime/call.h"
#include "runtime/constants_on_cpu.h"
#include "runtime/executor/graph_executor.h"
#include "runtime/prepare_layers.h"
#include "runtime/threads.h"

namespace wick {

void simplifyForInference(Graph& graph, const ObjectRef& self) {
  inlineCalls(graph);
  insertAutocasts(graph);
  freezeModule(graph, self);
  ConstantsOnCpu constants(graph);
  removeDropout(graph);
  lowerTuples(graph);
  removeListMutation(graph);
  removeTensorMutation(graph);
  unrollLoops(graph);
  // The checks of sizes that layers make; all but the first follow from each other.
  eraseShapeComputations(graph);
  eliminateCommonSubexpressions(graph);
  useRaisedConditions(graph);
  propagateConstants(graph);
  simplifyPeepholes(graph);
  eliminateDeadCode(graph);
  formLinears(graph);
  foldScales(graph);
  joinLinears(graph);
  constants.giveBack();
}

std::shared_ptr<GraphFunction> optimizeForInference(const ObjectRef& self, GraphFunction& method) {
  method.ensureDefined();
  const FunctionSchema& schema = method.schema();
  checkSelf(self, method);
  std::shared_ptr<Graph> graph = method.graph()->copy();
  simplifyForInference(*graph, self);
  fuseEpilogues(*graph);
  poolConstants(*graph);
  eliminateDeadCode(*graph);
  ensureTeam(numThreads());
  prepareLayers(*graph);
  markRewritten(*graph);
  // The graph may call functions of the module's compilation unit, whose owner the object holds.
  std::shared_ptr<GraphFunction> frozen(new GraphFunction(method.qualifiedName(), std::move(graph)),
                                        [self](GraphFunction* f) { delete f; });
  std::vector<Argument> arguments(schema.arguments().begin() + 1, schema.arguments().end());
  frozen->setSchema(
      FunctionSchema(schema.name(), schema.overload(), std::move(arguments), schema.returns()));
  GraphExecutor::of(*frozen).prepare();
  return frozen;
}

}  // namespace wick
