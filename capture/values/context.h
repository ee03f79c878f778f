// The first argument of forward and backward of functions with derivatives of their own.
#pragma once

#include "capture/values/instance.h"

namespace wick::capture {

class TensorVariable;

class ContextVariable : public InstanceVariable {
 public:
  ContextVariable(PyTypeObject* type, std::vector<bool> needs)
      : InstanceVariable(type), needs_(std::move(needs)) {}

  Variable* ownAttribute(Capture& capture, PyObject* name) override;
  void setAttribute(Capture& capture, PyObject* name, Variable* value) override;
  Variable* callMethod(Capture& capture, const std::string& name, const Arguments& given) override;
  int build(Builder& builder) override;

  // Ends what belongs to forward: the saved tensors can be read from now on.
  void beginBackward() { in_backward_ = true; }

  std::vector<Variable*> saved;             // tensors and None
  std::vector<Variable*> without_gradient;  // results
  bool materializes = true;                 // absent gradients are zeros

 private:
  const std::vector<bool> needs_;  // the gradient of each argument
  bool in_backward_ = false;
};

}  // namespace wick::capture
