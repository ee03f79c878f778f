// Sets of constants, and of objects that are equal to themselves alone.
#pragma once

#include <unordered_map>

#include "capture/values/variable.h"

namespace wick::capture {

class SetVariable : public Variable {
 public:
  // A set that exists if a source is set afterwards, else one that was computed just now.
  explicit SetVariable(Object keys) : type_(Py_TYPE(keys.get())), keys_(std::move(keys)) {}
  // A set that the program makes.
  SetVariable(Capture& capture, PyTypeObject* type, const std::vector<Variable*>& elements);

  PyTypeObject* type() const override { return type_; }
  void guard(Capture& capture) override;
  PyObject* constant() const override;
  Variable* callMethod(Capture& capture, const std::string& name, const Arguments& given) override;
  int64_t length(Capture& capture) override;
  bool truth(Capture& capture) override { return length(capture) != 0; }
  Variable* iterate(Capture& capture) override;
  bool contains(Capture& capture, Variable* element) override;
  Variable* operate(Capture& capture, std::string_view name, bool in_place,
                    Variable* right) override;
  int build(Builder& builder) override;
  void replay(Capture& capture, Builder& builder) override;

  // Returns a set of the objects that stand for the elements, as they do for keys of dicts.
  PyObject* keys() const { return keys_.get(); }
  bool holdsConstantsOnly() const { return objects_.empty(); }
  void add(Capture& capture, Variable* element);

 private:
  using Objects = std::unordered_map<PyObject*, Variable*>;
  // A method that changes the set, with keys: one, a list of them, or a set of them.
  struct Change {
    std::string method;
    std::vector<Object> arguments;
    Objects objects;
  };
  void change(Capture& capture, Change made);
  // Breaks the graph where nothing is known about the order of the elements.
  void checkOrder() const;
  static int buildKey(Builder& builder, PyObject* key, const Objects& objects);
  static std::vector<int> buildKeys(Builder& builder, PyObject* keys, const Objects& objects);
  // Returns a new set with the keys, which `objects` may hold.
  // Returns the key for an element. Breaks the graph where nobody knows whether it is there.
  Object keyFor(Capture& capture, Variable* element) const;
  SetVariable* wrap(Capture& capture, Object keys, const Objects& objects) const;

  PyTypeObject* type_;
  Object keys_;
  Objects objects_;              // the elements that are no constants, by their keys
  std::vector<Change> changes_;  // of a set that existed
  bool order_known_ = true;
};

}  // namespace wick::capture
