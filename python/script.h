// Scripts: functions and modules of Python that the front end compiles, and what is loaded.
#pragma once

#include <memory>

#include "python/object.h"

namespace wick {
class GraphFunction;
}

namespace wick::python {

// The Python object of a function; `owner` keeps it.
PyObject* scriptFunctionObject(GraphFunction* function, std::shared_ptr<void> owner);

}  // namespace wick::python
