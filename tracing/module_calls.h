// Calls of submodules within a trace, as methods of these.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace wick::tracing {

// What a submodule did: a part of the trace's graph.
struct ModuleCall {
  ObjectRef module;
  Value* self = nullptr;  // the module in the trace's graph
  std::vector<std::pair<std::string, IValue>> arguments;
  std::vector<Value*> given;  // the tensors in the arguments, in order; null: not known
  Node* before = nullptr;     // the last node that was there; the graph's end where it was empty
  Node* last = nullptr;       // the last one of the call; `before` when it recorded nothing
  IValue result;
  std::vector<Value*> results;  // the tensors in the result, in order
};

struct ModuleMethod {
  ObjectRef module;
  std::shared_ptr<Graph> graph;
};

// The tensors within lists, tuples and dicts, in order. False when there is anything else.
bool collectTensors(const IValue& value, std::vector<Tensor>& into);

// The part as a graph of its own: self, the arguments, then whatever else the part reads and the
// module does not own. Null where that cannot be said: it calls a method of another module.
std::shared_ptr<Graph> methodOf(const ModuleCall& call);

}  // namespace wick::tracing
