// Attributes of instances and classes, read without side effects. CPython keeps the attributes of
// most instances in an array; asking for `__dict__` would make a dict of it, which slows all later
// reads.
#pragma once

#include <vector>

#include "capture/bytecode/object.h"

namespace wick::capture {

// Returns the value (borrowed) under a name in the instance's own attributes, or null. Sets no
// exception, runs no code of Python.
PyObject* findInstanceItem(PyObject* instance, PyObject* name);

// Returns the names (borrowed) of the instance's own attributes in their order.
std::vector<PyObject*> instanceNames(PyObject* instance);

// Returns the dict (borrowed) that holds the instance's own attributes, or null where they stand in
// an array or where there are none.
PyObject* madeInstanceDict(PyObject* instance);

// Returns the attribute (borrowed) of a class or of one that it is derived from, as it stands in
// their dicts; null without an exception if there is none.
PyObject* findTypeItem(PyTypeObject* type, PyObject* name);

// Returns a number that changes when attributes of the class or of one that it is derived from are
// changed. Zero when the interpreter gives no more of them.
int64_t typeVersion(PyTypeObject* type);

// Sets the line that a frame object, which was made for a traceback, is at.
void setFrameLine(PyFrameObject* frame, int line);

}  // namespace wick::capture
