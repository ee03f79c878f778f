// Checks of single objects.
#pragma once

#include <string>

#include "capture/guards/source.h"

namespace wick::capture {

// Returns whether the check holds. Runs no code of Python, leaves no exception.
bool holds(const Check& check, PyObject* object);

// Returns the check as a sentence about `subject`.
std::string describeCheck(const Check& check, const std::string& subject);

// Returns repr(object) for messages, at most 200 characters of it. Never raises.
std::string shown(PyObject* object);

// Returns whether two objects are constants of the same class with the same value: floats bit for
// bit (a NaN equals itself, 0.0 is not -0.0), tuples element by element. False for all classes
// whose comparison could run code of Python, but for one and the same object.
bool sameConstant(PyObject* a, PyObject* b);

// Returns the number of times that classes were registered with abstract ones.
int64_t abstractToken();

// Returns whether two keys of sources lead to the same place. Both may be null.
bool sameKey(PyObject* a, PyObject* b);

}  // namespace wick::capture
