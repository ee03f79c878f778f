// Functions of functools.singledispatch.
#pragma once

#include "capture/values/variable.h"

namespace wick::capture {

class FunctionVariable;

// Calls a function `dispatch` of one, which finds the implementation for a class; null for other functions.
Variable* callDispatch(Capture& capture, FunctionVariable& function, const Arguments& given);

}  // namespace wick::capture
