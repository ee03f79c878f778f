// collections.deque.
#pragma once

#include "capture/values/iterators.h"
#include "capture/values/variable.h"

namespace wick::capture {

class DequeVariable : public Variable {
 public:
  // An object that exists.
  explicit DequeVariable(Object existing);
  // An object that the program makes. Without a limit of its length if `most` is negative.
  DequeVariable(std::vector<Variable*> elements, int64_t most);

  PyTypeObject* type() const override { return dequeType(); }
  void guard(Capture& capture) override;
  Variable* ownAttribute(Capture& capture, PyObject* name) override;
  Variable* callMethod(Capture& capture, const std::string& name, const Arguments& given) override;
  Variable* item(Capture& capture, Variable* key) override;
  void setItem(Capture& capture, Variable* key, Variable* value) override;
  int64_t length(Capture&) override { return size(); }
  bool truth(Capture&) override { return size() != 0; }
  Variable* iterate(Capture& capture) override;
  bool contains(Capture& capture, Variable* element) override;
  Variable* operate(Capture& capture, std::string_view name, bool in_place,
                    Variable* right) override;
  int build(Builder& builder) override;
  void replay(Capture& capture, Builder& builder) override;

  int64_t size() const { return static_cast<int64_t>(elements_.size()); }
  Variable* at(Capture& capture, int64_t index);
  const std::vector<Variable*>& all(Capture& capture);
  Variable* reversed(Capture& capture);
  // Counts the changes that iterators notice.
  int64_t numChanges() const { return changes_; }

  static PyTypeObject* dequeType();

 private:
  using Elements = std::vector<Variable*>;
  // Returns the elements to be changed; the change is one that iterators notice, or not.
  Elements& changed(Capture& capture, bool noticed = true);
  void append(Capture& capture, Variable* element, bool left);
  void extend(Capture& capture, Variable* iterable, bool left);
  void rotate(Capture& capture, int64_t steps);
  Variable* take(Capture& capture, bool left);
  void insert(Capture& capture, int64_t index, Variable* element);
  // Returns the index of the element that equals `element`, or -1.
  int64_t find(Capture& capture, Variable* element, int64_t begin, int64_t end);
  int64_t findOrRaise(Capture& capture, Variable* element, int64_t begin, int64_t end);
  Variable* index(Capture& capture, const Arguments& given);
  Variable* repeated(Capture& capture, Variable* count, bool in_place);
  int64_t place(Capture& capture, Variable* key) const;

  Elements elements_;  // null: not read yet
  Object found_;       // a list of the elements of the object that exists
  int64_t most_ = -1;
  int64_t changes_ = 0;
};

class DequeIterator : public IteratorVariable {
 public:
  DequeIterator(DequeVariable* deque, bool reversed);
  PyTypeObject* type() const override;
  Variable* next(Capture& capture) override;

 private:
  DequeVariable* deque_;
  bool reversed_;
  int64_t changes_, left_;
};

}  // namespace wick::capture
