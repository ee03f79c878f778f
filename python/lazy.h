// What wick.lazy offers.
#pragma once

#include "python/object.h"

namespace wick::python {

void addLazy(PyObject* module);

}  // namespace wick::python
