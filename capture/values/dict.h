// Dicts, and the attributes of instances, which are read and changed like a dict.
#pragma once

#include <utility>

#include "capture/values/variable.h"

namespace wick::capture {

class DictVariable : public Variable {
 public:
  // A dict that exists, or the attributes of the instance or function `holder` (kInstanceItem).
  DictVariable(Object existing, Access access, Variable* holder = nullptr);
  // A dict that the program makes, or the attributes of an instance or function `holder` that it makes.
  explicit DictVariable(PyTypeObject* type, Variable* holder = nullptr)
      : type_(type), holder_(holder), complete_(true) {}

  PyTypeObject* type() const override { return type_; }
  void guard(Capture& capture) override;
  Variable* ownAttribute(Capture& capture, PyObject* name) override;
  Variable* callMethod(Capture& capture, const std::string& name, const Arguments& given) override;
  Variable* item(Capture& capture, Variable* key) override;
  void setItem(Capture& capture, Variable* key, Variable* value) override;
  int64_t length(Capture& capture) override;
  bool truth(Capture& capture) override { return length(capture) != 0; }
  Variable* iterate(Capture& capture) override;
  bool contains(Capture& capture, Variable* element) override;
  int build(Builder& builder) override;
  void replay(Capture& capture, Builder& builder) override;

  // Returns the value under the key, or null.
  Variable* find(Capture& capture, PyObject* key);
  void set(Capture& capture, PyObject* key, Variable* key_variable, Variable* value);
  // Returns whether the key was there.
  bool erase(Capture& capture, PyObject* key);
  // Returns all keys and values in their order.
  std::vector<std::pair<Variable*, Variable*>> items(Capture& capture);
  // Returns the entries of a dict that the program made, in their order.
  std::vector<std::pair<Object, Variable*>> entriesMade() const;
  void clear(Capture& capture);
  // Returns the object that stands for a key in this dict, with the guards that it needs.
  Object keyOf(Capture& capture, Variable* key);
  // Returns whether the order counts in comparisons.
  bool isOrdered() const { return PyType_IsSubtype(type_, &PyODict_Type) != 0; }
  // Counts the changes of the keys, which iterators notice.
  int64_t numChanges() const { return changes_; }
  // Returns whether a copy is of the same class; else it is a plain dict.
  bool copiesItsClass() const;
  void update(Capture& capture, const Arguments& given);

  static PyTypeObject* defaultDictType();

  Variable* default_factory = nullptr;    // of a defaultdict that the program makes
  PyTypeObject* attributes_of = nullptr;  // the class of the instance whose attributes these are

 protected:
  // Writes the items of a dict that the program makes into the one in a register.
  void buildItems(Builder& builder, int made) const;

 private:
  struct Entry {
    Object key;
    Variable* key_variable = nullptr;
    Variable* value = nullptr;  // null: deleted
    int64_t order = 0;
    bool existed = false;
    bool changed = false;  // since the call began
    bool moved = false;    // deleted and set again
  };
  Entry* entryOf(PyObject* key);
  Entry& add(PyObject* key, Variable* key_variable, Variable* value, int64_t order);
  Entry* read(Capture& capture, PyObject* key);
  void readAll(Capture& capture);
  Source* owner(Capture& capture) const;
  void noteChange(Capture& capture);
  Variable* pop(Capture& capture, const Arguments& given);
  Variable* popItem(Capture& capture, const Arguments& given);
  void moveToEnd(Capture& capture, const Arguments& given);
  // Returns the function that makes missing values, or null.
  Variable* factory(Capture& capture);

  // A change of the keys of a dict that existed: its entries, which iterators from outside count, come to lie as in plain
  // execution if all of these are done again.
  struct Change {
    enum class Kind : uint8_t { kAdds, kDeletes, kClears };
    size_t entry;  // not for kClears
    Kind kind;
  };
  void noteKey(const Entry& entry, Change::Kind kind);
  void replayKeys(Builder& builder, int target);
  // Returns the registers of all keys and values in their order.
  std::vector<int> buildParts(Builder& builder) const;

  PyTypeObject* type_;
  Access access_ = Access::kDictItem;
  Variable* holder_ = nullptr;
  std::vector<Entry> entries_;
  std::vector<Change> key_changes_;
  Object index_;  // dict: key -> number of the entry
  bool complete_ = false;
  bool holds_ids_ = false;  // an id was a key
  int64_t next_order_ = 0;
  int64_t first_order_ = 0;
  int64_t changes_ = 0;
  int64_t size_ = 0;  // of the entries that are known and not deleted
};

// Compares two dicts, as dict.__eq__ does; `op` is Py_EQ or Py_NE.
Variable* compareDicts(Capture& capture, int op, DictVariable* left, DictVariable* right);

// Returns whether instances of the class are dicts whose items and order no code of Python rules.
bool behavesAsDict(PyTypeObject* type);

// Returns the object that stands for a key in tables: the constant, or one for the identity, which
// is not the one of any other key. Breaks the graph for keys whose hash only their class knows.
Object keyObject(Capture& capture, Variable* key);

// Returns a pair of each element of the iterable.
std::pair<Variable*, Variable*> pairOf(Capture& capture, Variable* element);

}  // namespace wick::capture
