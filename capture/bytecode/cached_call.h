// Functions that functools.lru_cache made: what they keep, which Python code does not see.
#pragma once

#include "capture/bytecode/object.h"

namespace wick::capture {

// Returns the class of such functions (borrowed), or null where their layout is another one.
PyTypeObject* cachedCallType();

struct CachedCall {
  PyObject* function = nullptr;  // that computes the results; borrowed
  bool typed = false;            // arguments of other classes are others
  Py_ssize_t most = -1;          // results that are kept, -1 for all
};
CachedCall cachedCallOf(PyObject* cached);

// Returns the key of a call: the arguments are in the tuple, those by name behind the others with
// their names in `names`, which may be null. `types` are the classes of all of them.
Object keyOfCall(PyObject* cached, PyObject* arguments, PyObject* names, PyObject* types);

// Returns the result that is kept under the key (borrowed), or null. Changes nothing.
PyObject* keptResult(PyObject* cached, PyObject* key);

// Does as a call that is the first with these arguments, whose function returns `result`.
// `given` are the arguments of a vectorcall.
void keepResult(PyObject* cached, PyObject* const* given, size_t num_positional, PyObject* names,
                PyObject* result);

}  // namespace wick::capture
