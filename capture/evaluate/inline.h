// Calls of functions that are written in Python: their frames are evaluated within the caller's.
#pragma once

#include "capture/values/variable.h"

namespace wick::capture {

class FunctionVariable;

// Returns the value of the call, or a generator. Throws Raised for exceptions of the program.
Variable* inlineCall(Capture& capture, FunctionVariable& function, const Arguments& given);

}  // namespace wick::capture
