// Functions with derivatives of their own: classes with forward and backward.
#pragma once

#include "capture/values/variable.h"

namespace wick::capture {

// Calls one. The first argument is the class.
Variable* applyFunction(Capture& capture, const Arguments& given);

}  // namespace wick::capture
