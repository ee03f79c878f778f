// Immutable objects that are the same in each call: numbers, texts, None, dtypes.
#pragma once

#include "capture/values/variable.h"

namespace wick::capture {

class ConstantVariable : public Variable {
 public:
  // `by_identity`: the guard compares the object, not its value.
  // `computed`: each call makes an object of its own, where the program could tell.
  ConstantVariable(Object constant, bool by_identity, bool computed = false)
      : constant_(std::move(constant)), by_identity_(by_identity), computed_(computed) {}

  PyTypeObject* type() const override { return Py_TYPE(constant_.get()); }
  void guard(Capture& capture) override;
  PyObject* constant() const override { return constant_.get(); }
  Variable* ownAttribute(Capture& capture, PyObject* name) override;
  Variable* callMethod(Capture& capture, const std::string& name, const Arguments& given) override;
  Variable* item(Capture& capture, Variable* key) override;
  int64_t length(Capture& capture) override;
  bool truth(Capture& capture) override;
  Variable* iterate(Capture& capture) override;
  bool contains(Capture& capture, Variable* element) override;
  int build(Builder& builder) override;

 private:
  Object constant_;
  bool by_identity_, computed_;
};

// Returns whether objects of this class are constants by their value.
bool isConstantType(PyTypeObject* type);
// Returns whether the object and all that it holds are constants by their value.
bool isConstant(PyObject* object);

// Returns whether a list or dict holds nothing but constants and containers of these.
bool holdsConstantsOnly(PyObject* container);

// Returns a variable for an object that was computed of constants just now, and nobody else has.
Variable* wrapComputed(Capture& capture, const Object& object);

}  // namespace wick::capture
