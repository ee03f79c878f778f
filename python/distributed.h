// What wick.distributed offers.
#pragma once

#include "python/object.h"

namespace wick::python {

void addDistributed(PyObject* module);

}  // namespace wick::python
