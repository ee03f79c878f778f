// The numbers that id() gives. Nothing is known of them but that no two objects share one.
#pragma once

#include "capture/values/variable.h"

namespace wick::capture {

class IdVariable : public Variable {
 public:
  explicit IdVariable(Variable* of) : of_(of) {}

  PyTypeObject* type() const override { return &PyLong_Type; }
  bool truth(Capture&) override { return true; }
  int build(Builder& builder) override;

  Variable* of() const { return of_; }

 private:
  Variable* of_;
};

// Breaks the graph if the key and a known one are an id and a number: nobody knows whether they are equal.
void checkIds(const Variable* key, PyObject* object, const Variable* known, PyObject* known_object);

// Breaks the graph for a tensor that a branch on elements decides: it may be another one or its own.
void checkIdentity(const Variable& variable);

// Returns the id of the variable's object, one variable for each.
Variable* idOf(Capture& capture, Variable* variable);

}  // namespace wick::capture
