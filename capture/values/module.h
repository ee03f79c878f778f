// Modules of Python.
#pragma once

#include "capture/values/variable.h"

namespace wick::capture {

class DictVariable;

class ModuleVariable : public Variable {
 public:
  explicit ModuleVariable(Object existing) { object = std::move(existing); }

  PyTypeObject* type() const override { return Py_TYPE(object.get()); }
  void guard(Capture& capture) override;
  Variable* ownAttribute(Capture& capture, PyObject* name) override;
  void setAttribute(Capture& capture, PyObject* name, Variable* value) override;
  bool truth(Capture&) override { return true; }
  int build(Builder& builder) override;

 private:
  DictVariable* names(Capture& capture);
  DictVariable* names_ = nullptr;
};

}  // namespace wick::capture
