// Calls of numpy's functions in captured code.
#pragma once

#include "capture/values/variable.h"

namespace wick::capture {

class ArrayVariable;

// Calls a function of numpy's, or one that makes tensors of arrays and arrays of tensors; null for all others. Breaks the graph for
// calls that operators of tensors do not compute exactly.
Variable* callArrayFunction(Capture& capture, PyObject* function, const Arguments& given);
// Returns the result of a function of the module `operator` where one of the operands is an array or a number of numpy's; null
// where none is.
Variable* operateOnArrays(Capture& capture, const char* name, std::vector<Variable*> operands);
// Returns the order in which numpy.array has to copy elements for an array like the shadow. Breaks the graph where there is none.
Object orderOf(PyObject* shadow);
// Returns an object of numpy with dtype, sizes and strides of the array.
Object shadowOf(PyObject* array);

}  // namespace wick::capture
