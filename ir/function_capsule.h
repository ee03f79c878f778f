// A function as a constant of a graph: for operators that run parts of a program (checkpoints,
// functions with derivatives of their own).
#pragma once

#include <memory>
#include <string>

#include "core/ivalue.h"
#include "ir/function.h"

namespace wick {

// Held by capsules (IValue::capsule). The function's graph is the front end's, complete: nothing is
// defined later. It may call functions of the compilation unit that it stands in, which whoever
// runs it keeps alive.
class FunctionCapsule : public RefCounted {
 public:
  FunctionCapsule(std::string name, std::shared_ptr<Graph> graph)
      : function(std::move(name), std::move(graph)) {}
  mutable GraphFunction function;
};

}  // namespace wick
