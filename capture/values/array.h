// Arrays of numpy, and its numbers that elements of arrays decide. Each stands on a tensor of the graph.
#pragma once

#include <utility>
#include <vector>

#include "capture/values/tensor.h"

namespace wick::capture {

class ArrayVariable : public Variable {
 public:
  // How the recipe makes an array that shares memory with another object: by a call, whose result may be a list that
  // the array is in. The arguments are arrays and tensors of the program, or objects that nobody changes.
  struct View {
    Object function;
    std::vector<std::pair<Variable*, Object>> arguments;
    Object names;                 // of the last arguments, or null
    ArrayVariable* of = nullptr;  // the array whose memory it is; null: a tensor's
    int64_t index = -1;           // in the result of the call; -1: it is the result
  };

  // An array that exists; its memory becomes an input when it is first used.
  explicit ArrayVariable(Object existing) { object = std::move(existing); }
  // An array or number that the graph computes. `shadow` is an object of numpy with the same class, dtype, sizes and strides, but
  // other elements.
  ArrayVariable(TensorVariable& tensor, Object shadow)
      : tensor_(&tensor), shadow_(std::move(shadow)) {
    used = true;
  }
  ArrayVariable(TensorVariable& tensor, Object shadow, View view)
      : tensor_(&tensor), shadow_(std::move(shadow)), view_(std::move(view)) {
    used = true;
  }

  PyTypeObject* type() const override { return Py_TYPE((shadow_ ? shadow_ : object).get()); }
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

  // Returns the tensor whose elements it has; after guard().
  TensorVariable& tensor() const { return *tensor_; }
  PyObject* shadow() const { return shadow_.get(); }
  // Returns whether it is a number of numpy's, not an array.
  bool isNumber() const;
  // Returns whether a branch may decide between two of them that differ in their elements alone.
  bool canJoin(const Capture& capture, const ArrayVariable& other) const;
  // Breaks the graph unless it may write to the memory. Returns whether that was there before.
  bool checkWrite(Capture& capture);
  // Says that its tensor is one of the program, which has the memory too. Breaks the graph where there would be several.
  TensorVariable& lend();
  // Says that the recipe makes a tensor on its memory.
  void noteTensor() { root().lent_ = true; }
  // Returns whether the memory was there before the recipe runs, or is a tensor's.
  bool isBorrowed() { return root().object || root().view_.function; }
  // Says that elements were copied where numpy has a view.
  void noteCopy() { root().copied_ = true; }

 private:
  bool ownsMemory() const;
  ArrayVariable& root() { return view_.of ? view_.of->root() : *this; }

  TensorVariable* tensor_ = nullptr;
  Object shadow_;
  View view_;
  bool lent_ = false, copied_ = false;
};

// A tensor that the program has made on the memory of an array that stays: the recipe makes it in the same way.
class ArrayTensorVariable : public TensorVariable {
 public:
  // `function` makes tensors of arrays; `fake` is one on the memory of the array's own.
  ArrayTensorVariable(Object fake, PyTypeObject* type, ArrayVariable& array, Object function)
      : TensorVariable(std::move(fake), type), array_(array), function_(std::move(function)) {
    used = true;
  }
  int build(Builder& builder) override;

 private:
  ArrayVariable& array_;
  const Object function_;
};

// Returns the tensor of an array with one element or of a number, whose truth is that of the element; null for others.
TensorVariable* tensorOfTruth(Variable* variable);

}  // namespace wick::capture
