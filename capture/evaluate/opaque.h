// Functions of the program that are put into graphs without a look at their code.
#pragma once

#include "capture/values/variable.h"

namespace wick::capture {

// Lets captured code call the function on fakes, for as long as it lives.
void allowInGraph(PyObject* function);
// Returns whether that was said of the function; false for null.
bool isAllowedInGraph(PyObject* function);

// Calls such a function on fakes and constants. Breaks the graph where it fails, changes an argument
// or gives anything else.
Variable* callOpaque(Capture& capture, PyObject* function, const Arguments& given);

}  // namespace wick::capture
