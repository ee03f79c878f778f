// Functions and methods that are written in C.
#pragma once

#include "capture/values/variable.h"

namespace wick::capture {

// A function or an unbound method.
class BuiltinVariable : public Variable {
 public:
  explicit BuiltinVariable(Object existing) { object = std::move(existing); }

  PyTypeObject* type() const override { return Py_TYPE(object.get()); }
  void guard(Capture& capture) override;
  Variable* ownAttribute(Capture& capture, PyObject* name) override;
  Variable* call(Capture& capture, const Arguments& given) override;
  bool truth(Capture&) override { return true; }
  int build(Builder& builder) override;
};

// A method of a built-in class, bound to a variable.
class BoundVariable : public Variable {
 public:
  // `method` is the descriptor in the class.
  BoundVariable(Variable* self, Object name, Object method)
      : self_(self), name_(std::move(name)), method_(std::move(method)) {}

  PyTypeObject* type() const override { return &PyCFunction_Type; }
  Variable* ownAttribute(Capture& capture, PyObject* name) override;
  Variable* call(Capture& capture, const Arguments& given) override;
  bool truth(Capture&) override { return true; }
  int build(Builder& builder) override;

 private:
  Variable* self_;
  Object name_, method_;
};

// An object that exists and that nothing is known about: it can be handed on, not used.
class OpaqueVariable : public Variable {
 public:
  explicit OpaqueVariable(Object existing) { object = std::move(existing); }

  PyTypeObject* type() const override { return Py_TYPE(object.get()); }
  void guard(Capture& capture) override;
  Variable* ownAttribute(Capture& capture, PyObject* name) override;
  int build(Builder& builder) override;
};

// Entries of the stack that no program sees.
class MarkVariable : public Variable {
 public:
  enum class Kind : uint8_t { kNull, kPreviousException, kOffset };
  explicit MarkVariable(Kind kind, Variable* previous = nullptr, int instruction = -1)
      : kind(kind), previous(previous), instruction(instruction) {}
  PyTypeObject* type() const override { return &PyBaseObject_Type; }
  int build(Builder& builder) override;

  const Kind kind;
  Variable* const previous;  // the exception that was handled before, or null
  const int instruction;     // the index of the instruction whose offset it is
};

}  // namespace wick::capture
