// Lists, tuples and named tuples, whose elements are variables.
#pragma once

#include "capture/values/variable.h"

namespace wick::capture {

class SequenceVariable : public Variable {
 public:
  void guard(Capture& capture) override;
  int64_t length(Capture& capture) override;
  bool truth(Capture& capture) override { return length(capture) != 0; }
  Variable* item(Capture& capture, Variable* key) override;
  Variable* iterate(Capture& capture) override;
  bool contains(Capture& capture, Variable* element) override;

  int64_t size() const { return static_cast<int64_t>(elements_.size()); }
  // Returns the element, which is read from the source when it is first asked for.
  Variable* at(Capture& capture, int64_t index);
  // Returns all elements.
  std::vector<Variable*> all(Capture& capture);
  // Returns the elements, null for those that were not read yet.
  const std::vector<Variable*>& known() const { return elements_; }

 protected:
  SequenceVariable(Object existing, Access access);
  explicit SequenceVariable(std::vector<Variable*> elements) : elements_(std::move(elements)) {}
  virtual Variable* sliceOf(Capture& capture, std::vector<Variable*> elements) = 0;
  // Returns the index of the element that equals `element`, or -1.
  int64_t find(Capture& capture, Variable* element, int64_t begin, int64_t end);

  std::vector<Variable*> elements_;  // null: not read yet
  Access access_ = Access::kListItem;
};

// Returns whether a call of the class makes its tuples, as for a class of C; tuple.__new__ makes others.
bool isMadeByItself(PyTypeObject* type);

class TupleVariable : public SequenceVariable {
 public:
  TupleVariable(Object existing, PyTypeObject* type)
      : SequenceVariable(std::move(existing), Access::kTupleItem), type_(type) {}
  TupleVariable(std::vector<Variable*> elements, PyTypeObject* type)
      : SequenceVariable(std::move(elements)), type_(type) {}

  PyTypeObject* type() const override { return type_; }
  PyObject* constant() const override;
  Variable* ownAttribute(Capture& capture, PyObject* name) override;
  Variable* callMethod(Capture& capture, const std::string& name, const Arguments& given) override;
  int build(Builder& builder) override;

 private:
  Variable* sliceOf(Capture& capture, std::vector<Variable*> elements) override;
  PyTypeObject* type_;
  mutable Object constant_;
  mutable bool asked_ = false;
};

class ListVariable : public SequenceVariable {
 public:
  explicit ListVariable(Object existing)
      : SequenceVariable(std::move(existing), Access::kListItem) {}
  explicit ListVariable(std::vector<Variable*> elements) : SequenceVariable(std::move(elements)) {}

  PyTypeObject* type() const override { return &PyList_Type; }
  Variable* callMethod(Capture& capture, const std::string& name, const Arguments& given) override;
  void setItem(Capture& capture, Variable* key, Variable* value) override;
  int build(Builder& builder) override;
  void replay(Capture& capture, Builder& builder) override;

  void append(Capture& capture, Variable* element);
  void extend(Capture& capture, Variable* iterable);
  // Sets all elements.
  void replace(Capture& capture, std::vector<Variable*> elements) {
    changed(capture) = std::move(elements);
  }

 private:
  Variable* sliceOf(Capture& capture, std::vector<Variable*> elements) override;
  std::vector<Variable*>& changed(Capture& capture);
  void insert(Capture& capture, const Arguments& given);
  Variable* pop(Capture& capture, const Arguments& given);
  void sort(Capture& capture, const Arguments& given);
};

// Returns whether instances of the class are tuples that no code of Python rules: named tuples, the
// results of C functions.
bool isPlainTuple(PyTypeObject* type);

// Returns the index that a constant says, counted from the end if it is negative; -1 if it is out of
// range. Breaks the graph for other values.
int64_t indexOf(Capture& capture, Variable* key, int64_t length);

}  // namespace wick::capture
