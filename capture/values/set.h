// Sets of constants.
#pragma once

#include "capture/values/variable.h"

namespace wick::capture {

class SetVariable : public Variable {
 public:
  // A set that exists if a source is set afterwards, else one that was computed just now.
  explicit SetVariable(Object set) : type_(Py_TYPE(set.get())), set_(std::move(set)) {}

  PyTypeObject* type() const override { return type_; }
  void guard(Capture& capture) override;
  PyObject* constant() const override;
  Variable* callMethod(Capture& capture, const std::string& name, const Arguments& given) override;
  int64_t length(Capture& capture) override;
  bool truth(Capture& capture) override { return length(capture) != 0; }
  Variable* iterate(Capture& capture) override;
  bool contains(Capture& capture, Variable* element) override;
  int build(Builder& builder) override;
  void replay(Capture& capture, Builder& builder);

  PyObject* set() const { return set_.get(); }
  void add(Capture& capture, Variable* element);

 private:
  void change(Capture& capture);

  PyTypeObject* type_;
  Object set_;
};

}  // namespace wick::capture
