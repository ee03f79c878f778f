// Calls of operators and builtin functions from Python.
//
// What a name means is what it means in a program. The first call of `torch.foo(a, b, dim=1)` with
// arguments of some types compiles the function
//
//   def f(a0: Tensor, a1: Tensor, a2: int):
//       return torch.foo(a0, a1, dim=a2)
//
// with the front end and keeps it with the function object. Booleans and None stand as literals in
// the text, numbers and strings only where the text compiles with nothing else. When the graph is
// nothing but calls of operators on the arguments and constants, later calls go to
// Operator::call directly; otherwise the function runs as any other.
#pragma once

#include "python/object.h"

namespace wick::python {

// How the text of a call is made.
enum class CallForm : uint8_t {
  Function,  // torch.foo(a0, a1, name=a2)
  Method,    // a0.foo(a1, name=a2)
  Property,  // a0.foo
  Binary,    // a0 + a1
  Unary,     // -a0
};

// A callable object; `text` is the name or the sign. `qualified` is what it is called in Python.
// `gives_dtype`: ints that it returns are numbers of dtypes.
PyObject* eagerFunction(CallForm form, const std::string& text, const std::string& qualified,
                        bool gives_dtype = false);

// Whether the object is one of these.
bool isEagerFunction(PyObject* object);

// Calls it with positional arguments. Null with an exception set; with `or_not_implemented`
// NotImplemented when an argument has no form as a value or nothing fits the types.
PyObject* callEager(PyObject* function, PyObject* const* args, size_t count,
                    bool or_not_implemented = false);

// A method or property of tensors that no class attribute says, put into the class; null without
// an exception when there is none.
PyObject* findTensorMember(PyObject* name);

}  // namespace wick::python
