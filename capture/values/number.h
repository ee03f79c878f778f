// Floats and booleans that the elements of tensors decide.
#pragma once

#include "capture/values/variable.h"

namespace wick::capture {

class TensorVariable;

// The only element of a tensor, as item(), float() and bool() give it. The recipe takes it out of the graph's result. Asking
// for its value ends the graph.
class NumberVariable : public Variable {
 public:
  // `tensor` has one element, is not written to, and has the dtype of the number: floating point or bool.
  NumberVariable(TensorVariable& tensor, PyTypeObject& type) : tensor_(tensor), type_(type) {}

  PyTypeObject* type() const override { return &type_; }
  PyObject* constant() const override;
  Variable* ownAttribute(Capture& capture, PyObject* name) override;
  bool truth(Capture& capture) override;
  int build(Builder& builder) override;

  TensorVariable& tensor() const { return tensor_; }
  bool isFloat() const { return &type_ == &PyFloat_Type; }

 private:
  TensorVariable& tensor_;
  PyTypeObject& type_;
};

// Returns the only element of a tensor as a constant or a number that the graph computes; null for others.
Variable* numberIn(Capture& capture, Variable* variable);
// Returns whether the element of a tensor, or the number, is true, as a bool that the graph computes; null for others.
Variable* truthIn(Capture& capture, Variable* variable);
// Returns whether the number is false; null for other variables.
Variable* notNumber(Capture& capture, Variable* variable);
// Returns the result of a comparison where one operand is a float that the graph computes and the other one is a number whose
// value a double has; null for others. `op` is Py_LT and so on.
Variable* compareNumbers(Capture& capture, int op, Variable* left, Variable* right);

}  // namespace wick::capture
