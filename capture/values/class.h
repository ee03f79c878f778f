// Classes.
#pragma once

#include "capture/values/variable.h"

namespace wick::capture {

class ClassVariable : public Variable {
 public:
  explicit ClassVariable(Object existing) { object = std::move(existing); }

  PyTypeObject* type() const override { return Py_TYPE(object.get()); }
  void guard(Capture& capture) override;
  PyObject* constant() const override { return object.get(); }
  Variable* ownAttribute(Capture& capture, PyObject* attribute) override;
  Variable* call(Capture& capture, const Arguments& given) override;
  Variable* item(Capture& capture, Variable* key) override;
  Variable* iterate(Capture& capture) override;
  int64_t length(Capture& capture) override;
  bool truth(Capture&) override { return true; }
  int build(Builder& builder) override;

  PyTypeObject* classObject() const { return reinterpret_cast<PyTypeObject*>(object.get()); }

 private:
  Variable* makeInstance(Capture& capture, const Arguments& given);
};

// Returns whether the class is an Enum, whose members are constants.
bool isEnum(PyTypeObject* type);

}  // namespace wick::capture
