// Calling script functions from C++.
#pragma once

#include <memory>
#include <vector>

#include "core/ivalue.h"
#include "runtime/run_options.h"

#pragma GCC visibility push(default)

namespace wick {

class FunctionSchema;
class GraphFunction;

// The arguments in the schema's order: positional ones first, then by keyword, then defaults. Each
// is fitted to its declared type with Python's conversions (an int for a float, a tuple for a
// list). `num_bound` leading arguments of the schema (the self of a method) are not part of
// `arguments` and the result. Throws UsageError that names the argument, what was expected, what
// was found and the declaration.
std::vector<IValue> bindArguments(const FunctionSchema& schema, std::vector<IValue> arguments,
                                  Kwargs kwargs, size_t num_bound = 0);

// Runs a function on the calling thread. Compiles it first when that has not happened
// (CompileError). Throws UsageError for arguments that do not fit, RuntimeError with the script's
// call stack for what goes wrong inside. Thread-safe. `options.owner` should own the function's
// compilation unit, or else what `owner` points to, which must live until the call returns; without
// either the caller keeps the unit alive until the call and its forks end.
IValue callFunction(GraphFunction& function, std::vector<IValue> arguments, Kwargs kwargs = {},
                    const RunOptions& options = {}, const std::shared_ptr<void>* owner = nullptr);

// The same for a method, whose first argument is `self`. The owner is that of `self` unless the
// options name one. UsageError also when `self` is null or of another class. A module is lent to
// the call, which counts no reference to it: `self` must hold it until the call returns.
IValue callMethod(const ObjectRef& self, GraphFunction& method, std::vector<IValue> arguments,
                  Kwargs kwargs = {}, const RunOptions& options = {});

// UsageError unless the function is a method of the object's class, or of one that it stands for.
void checkSelf(const ObjectRef& self, GraphFunction& method);

}  // namespace wick

#pragma GCC visibility pop
