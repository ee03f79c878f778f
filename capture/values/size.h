// Sizes of tensors that differ from call to call, and numbers that are computed of them.
#pragma once

#include "capture/guards/sizes.h"
#include "capture/values/variable.h"

namespace wick::capture {

// An int. Asking for its value fixes it at that of the example: the entry is one for this value
// then.
class SizeVariable : public Variable {
 public:
  SizeVariable(Capture& capture, SizeExpression expression)
      : capture_(capture), expression_(std::move(expression)) {}
  // An int that exists, an argument of the frame.
  SizeVariable(Capture& capture, Object existing) : capture_(capture) {
    object = std::move(existing);
  }

  PyTypeObject* type() const override { return &PyLong_Type; }
  void guard(Capture& capture) override;
  PyObject* constant() const override;
  const SizeExpression& expression();

  Variable* ownAttribute(Capture& capture, PyObject* name) override;
  Variable* callMethod(Capture& capture, const std::string& name, const Arguments& given) override;
  Variable* item(Capture& capture, Variable* key) override;
  int64_t length(Capture& capture) override;
  bool truth(Capture& capture) override;
  Variable* iterate(Capture& capture) override;
  bool contains(Capture& capture, Variable* element) override;
  int build(Builder& builder) override;

 private:
  Variable* fixed(Capture& capture) const;
  int buildDecided(Builder& builder, const SizeExpression& expression) const;

  Capture& capture_;
  SizeExpression expression_;  // after guard()
  mutable Object constant_;
};

// A slice with bounds that are open sizes.
class SliceVariable : public Variable {
 public:
  SliceVariable(Variable* start, Variable* stop, Variable* step) : parts_{start, stop, step} {}

  PyTypeObject* type() const override { return &PySlice_Type; }
  PyObject* constant() const override;
  Variable* ownAttribute(Capture& capture, PyObject* name) override;
  int build(Builder& builder) override;
  Variable* part(size_t i) const { return parts_[i]; }

 private:
  Variable* parts_[3];
  mutable Object constant_;
};

// Returns whether the variable is an open size, or a slice, tuple or list that holds one.
bool holdsSizes(const Variable* variable);

// Return the result of an operator where one operand is an open size and both are ints; null where
// the operator needs the value. `name` is that of the special method without underscores, `op` is
// Py_LT and so on.
Variable* binaryOfSizes(Capture& capture, std::string_view name, Variable* left, Variable* right);
Variable* compareSizes(Capture& capture, int op, Variable* left, Variable* right);
Variable* negativeSize(Capture& capture, Variable* operand);

}  // namespace wick::capture
