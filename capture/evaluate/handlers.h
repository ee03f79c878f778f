// Tables of the functions and classes that are known one by one, and how they read their arguments.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <unordered_map>

#include "capture/values/variable.h"

namespace wick::capture {

// Returns null for arguments that the function does not know.
using Handler = Variable* (*)(Capture&, const Arguments&);
using Handlers = std::unordered_map<PyObject*, Handler>;

// Returns the number of positional arguments, or SIZE_MAX if there are keywords.
size_t argumentCount(const Arguments& given);
// Returns the keyword argument, or null.
Variable* keyword(const Arguments& given, const char* name);
// Returns the argument that may be given by position or by its name, or null.
Variable* argument(const Arguments& given, size_t index, const char* name);
// Returns whether no keyword has another name.
bool onlyKeywords(const Arguments& given, std::initializer_list<const char*> names);
// Calls the function itself with constants; null if another value is among the arguments.
Variable* callConcretely(Capture& capture, PyObject* function, const Arguments& given);

// Adds a method of a class, or what a module has under the name, if there is one.
void addMethod(Handlers& handlers, PyTypeObject* type, const char* name, Handler handler);
void addFrom(Handlers& handlers, const char* module, const char* name, Handler handler);

// Adds all of a module.
void addIterators(Handlers& handlers);          // itertools
void addOperatorFunctions(Handlers& handlers);  // operator
void addCollections(Handlers& handlers);        // collections
void addHeaps(Handlers& handlers);              // heapq

}  // namespace wick::capture
