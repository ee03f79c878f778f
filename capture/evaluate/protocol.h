// Operations on variables, as CPython's object protocol does them on objects: each uses its operands,
// asks the kinds and the classes, and breaks the graph for what it does not know.
#pragma once

#include <string>
#include <vector>

#include "capture/values/variable.h"

namespace wick::capture {

// ---- attributes ----

Variable* getAttribute(Capture& capture, Variable* variable, PyObject* name);
// Returns null instead of raising an AttributeError.
Variable* findAttribute(Capture& capture, Variable* variable, PyObject* name);
// Does as object.__getattribute__ does.
Variable* getPlainly(Capture& capture, Variable* variable, PyObject* name);
void setAttribute(Capture& capture, Variable* variable, PyObject* name, Variable* value);
// Returns what an attribute `found` of the class `type` is for the variable, which is null for an
// access by the class itself.
Variable* bindAttribute(Capture& capture, PyObject* found, Variable* variable, PyTypeObject* type);
// Sets or deletes by the descriptor. False if it is no descriptor that Python code rules.
bool setByDescriptor(Capture& capture, PyObject* descriptor, Variable* variable, Variable* value);

// ---- calls ----

Variable* callVariable(Capture& capture, Variable* function, const Arguments& given);
// Calls a method of a built-in class.
Variable* callBound(Capture& capture, Variable* self, PyObject* name, PyObject* method,
                    const Arguments& given);
// Calls a function of the world.
Variable* callWorld(Capture& capture, PyObject* function, const Arguments& given);
// Returns a function of the module `operator`.
Object operatorFunction(const char* name);
// Returns the only element of a tensor as a constant, or as an int that the graph computes; null for
// others.
Variable* elementOf(Capture& capture, Variable* variable);
// Calls a method by its name.
Variable* callMethod(Capture& capture, Variable* variable, const char* name,
                     std::vector<Variable*> given = {});

// ---- values ----

// `op` is the number of the instruction BINARY_OP, which tells whether it is an assignment.
Variable* binary(Capture& capture, int op, Variable* left, Variable* right);
enum class Unary : uint8_t { kPositive, kNegative, kNot, kInvert };
Variable* unary(Capture& capture, Unary op, Variable* operand);
// `op` is Py_LT and so on.
Variable* compare(Capture& capture, int op, Variable* left, Variable* right);
bool truthOf(Capture& capture, Variable* variable);
// Returns whether both are equal, as containers ask: one object is equal to itself.
bool isEqual(Capture& capture, Variable* left, Variable* right);
// Returns whether a constant is or holds a NaN, which only its identity makes equal to itself.
bool holdsNan(PyObject* constant);
// Returns whether both are one object, and guards it.
bool isSame(Capture& capture, Variable* left, Variable* right);
int64_t lengthOf(Capture& capture, Variable* variable);
Variable* getItem(Capture& capture, Variable* container, Variable* key);
void setItem(Capture& capture, Variable* container, Variable* key, Variable* value);
bool contains(Capture& capture, Variable* container, Variable* element);
Variable* iterate_(Capture& capture, Variable* iterable);
// Returns null at the end.
Variable* nextOf(Capture& capture, Variable* iterator);
// Returns the number that a constant says as an index. Breaks the graph for other values.
int64_t integerOf(Capture& capture, Variable* number);
// Returns all elements of an iterable.
std::vector<Variable*> elementsOf(Capture& capture, Variable* iterable);
// Returns them in order, as sorted() does; `key` may be null.
std::vector<Variable*> sortVariables(Capture& capture, std::vector<Variable*> elements,
                                     Variable* key, bool reverse);
// Returns the text that format() makes.
Variable* formatted(Capture& capture, Variable* value, int conversion, Variable* specification);
// Returns the text that pattern.format(...) makes.
Variable* formattedBy(Capture& capture, PyObject* pattern, const Arguments& given);

// Returns a function of the module `builtins` (borrowed, for good).
PyObject* builtinNamed(const char* name);
// Returns an object of a module of the standard library (borrowed, for good).
PyObject* libraryObject(const char* module, const char* name);
// Returns the special method of the variable's class (borrowed), or null if it has none.
PyObject* specialMethod(const Variable& variable, const char* name);
// Calls it; null if the class has none.
Variable* callSpecial(Capture& capture, Variable* variable, const char* name,
                      std::vector<Variable*> given = {});

}  // namespace wick::capture
