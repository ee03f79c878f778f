// Running Code. Most callers want runtime/call.h, which checks arguments first.
#pragma once

#include <memory>
#include <vector>

#include "core/ivalue.h"
#include "runtime/interpreter/code.h"
#include "runtime/run_options.h"

namespace wick {

// Runs to the end on the calling thread, with all that it forked, and returns the output; a graph
// with several outputs gives a tuple, one without None. The arguments must be of the types of the
// graph's inputs. Throws
// RuntimeError with the script's call stack. `code` must live until the run ends.
//
// Where the options name no owner, `owner` may point to one that lives until this returns; the run
// copies it when it makes an object or forks. (All calls of a program share one count of owners.)
IValue runCode(const Code& code, std::vector<IValue> arguments, const RunOptions& options = {},
               const std::shared_ptr<void>* owner = nullptr);

// The same for the method of a module, whose first argument the caller lends: arguments[0] holds no
// reference of its own (IValue::borrow), and the module lives until this returns. None afterwards.
// code.keepsFirst() must hold.
IValue runCodeWithLentModule(const Code& code, std::vector<IValue>& arguments,
                             const RunOptions& options, const std::shared_ptr<void>* owner);

// The same for operators that call back into a script: under the limits of the run that called the
// operator on this thread, or none outside of a run.
IValue runCodeWithin(const Code& code, std::vector<IValue> arguments);

}  // namespace wick
