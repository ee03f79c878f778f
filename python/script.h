// Scripts: functions and modules of Python that the front end compiles, and what is loaded.
#pragma once

#include "python/object.h"

namespace wick::python {

void addScript(PyObject* module);

}  // namespace wick::python
