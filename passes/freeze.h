// Turns a method of one particular module into a function of its other inputs.
#pragma once

#include "core/ivalue.h"
#include "ir/graph.h"

namespace wick {

// `graph` is a method whose first input is `self`; calls must be inlined already. The input is
// removed, and every attribute that the method reads from `self` or its submodules becomes a
// constant, unless the method itself sets the attribute or writes to its tensor or container; such
// an attribute is still read from the object, which the graph then holds as a constant. Constants
// are propagated on the way. Later changes of the module's attributes are not seen by the frozen
// graph.
void freezeModule(Graph& graph, const ObjectRef& self);

// Makes constants of attributes in the same way, of the objects that are constants of the graph.
void freezeConstants(Graph& graph);

}  // namespace wick
