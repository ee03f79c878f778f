// Iterators that the program made during the capture.
#pragma once

#include "capture/values/variable.h"

namespace wick::capture {

class DictVariable;
class SequenceVariable;

class IteratorVariable : public Variable {
 public:
  Variable* iterate(Capture&) override { return this; }
  bool truth(Capture&) override { return true; }
  int build(Builder& builder) override;
  // Returns another iterator that has come as far; null where the kind cannot be copied.
  virtual IteratorVariable* copy(Capture&) const { return nullptr; }

  // A loop holds the iterator on its stack, and nobody else knows it.
  bool of_loop = false;
};

// Walks over a list or tuple, which may change meanwhile.
class SequenceIterator : public IteratorVariable {
 public:
  explicit SequenceIterator(SequenceVariable* sequence, bool reversed = false);
  PyTypeObject* type() const override;
  Variable* next(Capture& capture) override;
  int build(Builder& builder) override;
  IteratorVariable* copy(Capture& capture) const override;

 private:
  SequenceVariable* sequence_;
  bool reversed_;
  bool ended_ = false;
  int64_t at_;
};

// Walks over an iterator of constants, which it owns.
class ConstantIterator : public IteratorVariable {
 public:
  explicit ConstantIterator(Object iterator) : iterator_(std::move(iterator)) {}
  PyTypeObject* type() const override { return Py_TYPE(iterator_.get()); }
  Variable* next(Capture& capture) override;
  int build(Builder& builder) override;
  IteratorVariable* copy(Capture& capture) const override;

 private:
  Object iterator_;
  std::vector<Object> taken_;
};

class DictIterator : public IteratorVariable {
 public:
  enum class What : uint8_t { kKeys, kValues, kItems };
  DictIterator(Capture& capture, DictVariable* dict, What what);
  PyTypeObject* type() const override;
  Variable* next(Capture& capture) override;
  IteratorVariable* copy(Capture& capture) const override;

 private:
  DictVariable* dict_;
  What what_;
  std::vector<std::pair<Variable*, Variable*>> items_;
  int64_t changes_;
  bool ended_ = false;
  size_t at_ = 0;
};

// Asks an object for its items 0, 1, 2 until it raises IndexError.
class ItemIterator : public IteratorVariable {
 public:
  explicit ItemIterator(Variable* container) : container_(container) {}
  PyTypeObject* type() const override { return &PySeqIter_Type; }
  Variable* next(Capture& capture) override;

 private:
  Variable* container_;
  int64_t at_ = 0;
  bool ended_ = false;
};

// dict.keys(), dict.values() and dict.items().
class DictView : public Variable {
 public:
  DictView(DictVariable* dict, DictIterator::What what) : dict_(dict), what_(what) {}
  PyTypeObject* type() const override;
  Variable* iterate(Capture& capture) override;
  int64_t length(Capture& capture) override;
  bool truth(Capture& capture) override { return length(capture) != 0; }
  bool contains(Capture& capture, Variable* element) override;
  int build(Builder& builder) override;

 private:
  DictVariable* dict_;
  DictIterator::What what_;
};

// zip(), enumerate(), map(), filter() and their like: `step` makes an element of the next ones of
// the iterators, or null to go on.
class CombinedIterator : public IteratorVariable {
 public:
  enum class Kind : uint8_t { kZip, kEnumerate, kMap, kFilter };
  CombinedIterator(Kind kind, std::vector<Variable*> iterators, Variable* function = nullptr,
                   bool strict = false)
      : kind_(kind), iterators_(std::move(iterators)), function_(function), strict_(strict) {}
  PyTypeObject* type() const override;
  Variable* next(Capture& capture) override;

  int64_t count = 0;  // of enumerate

 private:
  void checkLengths(Capture& capture, size_t ended);

  Kind kind_;
  std::vector<Variable*> iterators_;
  Variable* function_;
  bool strict_;
};

}  // namespace wick::capture
