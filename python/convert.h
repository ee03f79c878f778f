// Values between Python and programs.
#pragma once

#include <string>

#include "core/ivalue.h"
#include "python/object.h"

namespace wick::python {

// The value of a Python object, typed by what it is: a list has the type of its elements, joined as
// in a program, and what is shared stays shared. TypeError that names what has no form as a value.
// RuntimeError (OverflowError) for an int beyond 64 bits.
IValue toValue(PyObject* object);
// The same; false instead of a TypeError.
bool tryValue(PyObject* object, IValue& out);
// The other way: lists, dicts and tuples become Python's, named tuples classes of their own.
PyObject* toPython(const IValue& value);
// Calls a function of Python from any thread. Its exception is a RuntimeError of that class.
IValue callPython(PyObject* function, const std::vector<IValue>& arguments);
// A named tuple of Python's: the class is made once for each name and set of fields.
PyObject* namedTuple(const std::string& name, const std::vector<std::string>& fields,
                     const Owned& elements);

// Objects of script classes, modules, enums and futures are wrapped by the part that knows them.
struct ObjectConversion {
  // A new reference, or null with an exception set.
  PyObject* (*wrap)(const IValue& value) = nullptr;
  // Whether the object is one of these, and its value.
  bool (*unwrap)(PyObject* object, IValue& out) = nullptr;
};
void setObjectConversion(ObjectConversion conversion);

}  // namespace wick::python
