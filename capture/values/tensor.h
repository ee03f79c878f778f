// Tensors of the graph.
#pragma once

#include "capture/values/variable.h"

namespace wick::capture {

class TensorVariable : public Variable {
 public:
  // A tensor that exists; it becomes an input when it is first used.
  explicit TensorVariable(Object existing) : type_(Py_TYPE(existing.get())) {
    object = std::move(existing);
  }
  // A tensor that the graph computes.
  TensorVariable(Object fake, PyTypeObject* type) : fake_(std::move(fake)), type_(type) {}

  PyTypeObject* type() const override { return type_; }
  void guard(Capture& capture) override;
  Variable* ownAttribute(Capture& capture, PyObject* name) override;
  void setAttribute(Capture& capture, PyObject* name, Variable* value) override;
  Variable* callMethod(Capture& capture, const std::string& name, const Arguments& given) override;
  Variable* item(Capture& capture, Variable* key) override;
  void setItem(Capture& capture, Variable* key, Variable* value) override;
  int64_t length(Capture& capture) override;
  bool truth(Capture& capture) override;
  Variable* iterate(Capture& capture) override;
  int build(Builder& builder) override;

  // Returns the value of len(), which may be an open size.
  Variable* firstSize(Capture& capture);
  // Returns the tensor without memory that stands for this one; after guard().
  PyObject* fake() const { return fake_.get(); }

  // Whether a branch on elements decides which tensor it is: its identity is not known.
  bool joined = false;

 private:
  Object fake_;
  PyTypeObject* type_;
};

}  // namespace wick::capture
