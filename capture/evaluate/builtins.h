// The builtin functions and classes that are known one by one.
#pragma once

#include "capture/values/variable.h"

namespace wick::capture {

// Calls the builtin; null if it is none of these, or knows nothing of such arguments.
Variable* callBuiltin(Capture& capture, PyObject* function, const Arguments& given);

// The same for functions of the standard library that compute constants of constants, in `math` and
// `operator`.
Variable* callPure(Capture& capture, PyObject* function, const Arguments& given);

}  // namespace wick::capture
