// A call of a module with its hooks as one function, for those who prepare, freeze or compile it.
#pragma once

#include <memory>

#include "ir/function.h"
#include "runtime/module.h"

namespace wick {

// Returns a function of forward's name and arguments, self first, that computes what Module::operator()
// does: the pre-hooks, which get all arguments as one tuple, forward, and the hooks. It keeps the module.
// Throws UsageError when a hook returns a type that says not until it runs what takes the place of the
// arguments or of the result; CompileError when forward or a hook does not compile.
std::shared_ptr<GraphFunction> functionWithHooks(const Module& module);

}  // namespace wick
