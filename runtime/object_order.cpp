// Lets list.sort() and sorted() compare objects by their class's __lt__.
#include "runtime/object_order.h"

#include "runtime/executor/graph_executor.h"
#include "runtime/interpreter/interpreter.h"
#include "runtime/ops/values/order.h"

namespace wick {

namespace {

bool objectLess(const IValue& a, const IValue& b) {
  const ClassType& type = *a.toObject().type();
  Function* method = type.findMethod("__lt__");
  WICK_CHECK(method, "'<' not supported between instances of '{}': it has no __lt__", type.name());
  auto& function = static_cast<GraphFunction&>(*method);
  const FunctionSchema& schema = function.schema();
  const auto& formal = schema.arguments();
  WICK_CHECK(formal.size() == 2 && b.type()->isSubtypeOf(*formal[1].type),
             "{} cannot compare with a '{}'", schema.str(), b.type()->annotation());
  return runCodeWithin(GraphExecutor::of(function).code(), {a, b}).toBool();
}

}  // namespace

void installObjectOrder() {
  ops::setObjectLess(&objectLess);
}

}  // namespace wick
