// functools.partial.
#pragma once

#include "capture/values/variable.h"

namespace wick::capture {

class PartialVariable : public Variable {
 public:
  // An object that exists.
  explicit PartialVariable(Object existing) { object = std::move(existing); }
  // An object that the program makes.
  PartialVariable(Variable* function, Arguments given)
      : function_(function), given_(std::move(given)) {}

  PyTypeObject* type() const override { return partialType(); }
  void guard(Capture& capture) override;
  Variable* ownAttribute(Capture& capture, PyObject* name) override;
  void setAttribute(Capture& capture, PyObject* name, Variable* value) override;
  Variable* call(Capture& capture, const Arguments& given) override;
  bool truth(Capture&) override { return true; }
  int build(Builder& builder) override;

  // Returns a partial of the same function with more arguments; null where attributes may be lost.
  Variable* extended(Capture& capture, const Arguments& more) const;

  static PyTypeObject* partialType();

 private:
  Arguments joined(const Arguments& more) const;

  Variable* function_ = nullptr;
  Arguments given_;
  std::vector<std::pair<Object, Variable*>> attributes_;  // that the program has set
};

}  // namespace wick::capture
