#include "capture/values/dict.h"

#include <fmt/format.h>

#include <algorithm>

#include "capture/bytecode/instance.h"
#include "capture/effects/builder.h"
#include "capture/evaluate/capture.h"
#include "capture/evaluate/handlers.h"
#include "capture/evaluate/protocol.h"
#include "capture/values/constant.h"
#include "capture/values/derived_dict.h"
#include "capture/values/identity.h"
#include "capture/values/instance.h"
#include "capture/values/iterators.h"
#include "capture/values/sequence.h"

namespace wick::capture {
namespace {

bool inheritsFrom(PyTypeObject* type, const char* name, PyTypeObject* from) {
  const Object text = Object::checked(PyUnicode_InternFromString(name));
  PyObject* const found = findTypeItem(type, text.get());
  if (found == findTypeItem(from, text.get())) return true;
  return found == findTypeItem(&PyODict_Type, text.get());
}

}  // namespace

bool behavesAsDict(PyTypeObject* type) {
  if (type == &PyDict_Type || type == &PyODict_Type || type == DictVariable::defaultDictType()) {
    return true;
  }
  if (!PyType_IsSubtype(type, &PyDict_Type)) return false;
  for (const char* name :
       {"__getitem__", "__setitem__", "__delitem__", "__iter__", "__len__", "__contains__",
        "__eq__",      "__missing__", "keys",        "values",   "items",   "get",
        "pop",         "popitem",     "setdefault",  "update",   "clear",   "__getattribute__",
        "__bool__",    "__hash__",    "__ne__",      "__or__",   "__ror__", "__ior__",
        "__reversed__"}) {
    if (!inheritsFrom(type, name, &PyDict_Type)) return false;
  }
  return true;
}

namespace {

// Functions of C are equal where they belong to the same object, and those of a module are one.
bool isModuleFunction(PyObject* object) {
  return object && PyCFunction_CheckExact(object) &&
         (!PyCFunction_GET_SELF(object) || PyModule_Check(PyCFunction_GET_SELF(object)));
}

}  // namespace

Object keyObject(Capture& capture, Variable* key) {
  capture.use(key);
  if (PyObject* constant = key->constant()) {
    if (PyObject_Hash(constant) == -1) capture.raiseCurrent();
    if (holdsNan(constant)) breakGraph("a NaN is a key");
    return Object::share(constant);
  }
  if (dynamic_cast<TupleVariable*>(key)) {
    Object whole = capture.elementsFor(key);
    if (isConstant(whole.get())) return whole;
    breakGraph("a key that is a tuple of values that are not constants");
  }
  if (auto* id = dynamic_cast<IdVariable*>(key)) {
    if (!id->identity) {
      id->identity =
          Object::checked(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type)));
    }
    return id->identity;
  }
  if (isModuleFunction(key->object.get())) return key->object;
  const hashfunc hash = key->type()->tp_hash;
  if (!hash || hash == PyObject_HashNotImplemented) {
    capture.raise(PyExc_TypeError, fmt::format("unhashable type: '{}'", key->type()->tp_name));
  }
  if (hash != PyBaseObject_Type.tp_hash && !capture.world.isTensorType(key->type())) {
    breakGraph(fmt::format("{} is a key", describe(*key)));
  }
  checkIdentity(*key);
  // Objects that are several keys now must not be one object in another call.
  if (key->source) capture.guards.addDistinct(key->source);
  if (key->object) return key->object;
  if (!key->identity) {
    key->identity =
        Object::checked(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type)));
  }
  return key->identity;
}

PyTypeObject* DictVariable::defaultDictType() {
  static PyObject* const found = libraryObject("collections", "defaultdict");
  return reinterpret_cast<PyTypeObject*>(found);
}

Object DictVariable::keyOf(Capture& capture, Variable* key) {
  Object found = keyObject(capture, key);
  // A dict that exists has this object as a key, or lacks it, and says nothing of others.
  if (owner(capture) && key->source && found.get() == key->object.get() &&
      !isConstant(found.get())) {
    capture.guards.add(key->source, {Check::Kind::kIdentity, found, 0, {}});
  }
  // The keys of a dict that exists must be known before an id is looked up.
  if (dynamic_cast<IdVariable*>(key) && object) readAll(capture);
  const bool compares = dynamic_cast<IdVariable*>(key) || (holds_ids_ && PyLong_Check(found.get()));
  for (size_t i = 0; compares && i < entries_.size(); ++i) {
    const Entry& each = entries_[i];
    if (each.value) checkIds(key, found.get(), each.key_variable, each.key.get());
  }
  return found;
}

bool DictVariable::copiesItsClass() const {
  return type_ == &PyDict_Type || type_ == &PyODict_Type || type_ == defaultDictType();
}

std::pair<Variable*, Variable*> pairOf(Capture& capture, Variable* element) {
  Variable* const parts = iterate_(capture, element);
  std::vector<Variable*> both;
  while (Variable* each = nextOf(capture, parts)) both.push_back(each);
  if (both.size() != 2) {
    capture.raise(PyExc_ValueError,
                  fmt::format("dictionary update sequence element #0 has length {}; 2 is required",
                              both.size()));
  }
  return {both[0], both[1]};
}

DictVariable::DictVariable(Object existing, Access access, Variable* holder)
    : type_(access == Access::kDictItem ? Py_TYPE(existing.get()) : &PyDict_Type),
      access_(access),
      holder_(holder) {
  object = std::move(existing);
}

Source* DictVariable::owner(Capture&) const {
  return holder_ ? holder_->source : source;
}

void DictVariable::guard(Capture& capture) {
  if (holder_) {
    capture.use(holder_);
    return;
  }
  if (!source) return;
  const int64_t version = type_ == &PyDict_Type ? 0 : typeVersion(type_);
  capture.guards.add(
      source, {Check::Kind::kType, Object::share(reinterpret_cast<PyObject*>(type_)), version, {}});
}

// ---- entries ----

DictVariable::Entry* DictVariable::entryOf(PyObject* key) {
  if (!index_) return nullptr;
  PyObject* const found = PyDict_GetItemWithError(index_.get(), key);
  if (!found) {
    if (PyErr_Occurred()) throw PythonError();
    return nullptr;
  }
  return &entries_[static_cast<size_t>(PyLong_AsLongLong(found))];
}

DictVariable::Entry& DictVariable::add(PyObject* key, Variable* key_variable, Variable* value,
                                       int64_t order) {
  holds_ids_ |= dynamic_cast<IdVariable*>(key_variable) != nullptr;
  if (!index_) index_ = Object::checked(PyDict_New());
  const Object number = Object::checked(PyLong_FromSize_t(entries_.size()));
  if (PyDict_SetItem(index_.get(), key, number.get()) < 0) throw PythonError();
  size_ += value != nullptr;
  Entry& made = entries_.emplace_back();
  made.key = Object::share(key);
  made.key_variable = key_variable;
  made.value = value;
  made.order = order;
  return made;
}

// Finds the entry, or reads it from the dict that exists; null if there is none.
DictVariable::Entry* DictVariable::read(Capture& capture, PyObject* key) {
  if (Entry* known = entryOf(key)) return known;
  if (complete_) return nullptr;
  PyObject* value = nullptr;
  if (access_ == Access::kInstanceItem) {
    value = PyUnicode_Check(key) ? findInstanceItem(object.get(), key) : nullptr;
  } else {
    value = PyDict_GetItemWithError(object.get(), key);
    if (!value && PyErr_Occurred()) throw PythonError();
  }
  Source* const from = owner(capture);
  if (!value) {
    const auto lacks =
        access_ == Access::kInstanceItem ? Check::Kind::kLacksOwn : Check::Kind::kLacks;
    if (from) capture.guards.add(from, {lacks, Object::share(key), 0, {}});
    return nullptr;
  }
  Source* const place = from ? capture.guards.child(from, access_, 0, key) : nullptr;
  if (place) capture.guards.add(place, {Check::Kind::kPresent, {}, 0, {}});
  Variable* const made = capture.read(place, value);
  Entry& entry = add(key, nullptr, made, 0);
  entry.existed = true;
  return &entry;
}

// Reads all entries in their order, and guards that there are no others.
void DictVariable::readAll(Capture& capture) {
  if (complete_) return;
  std::vector<Object> keys;
  if (access_ == Access::kInstanceItem) {
    if (PyDict_Check(object.get())) breakGraph("all attributes of a dict");
    for (PyObject* name : instanceNames(object.get())) keys.push_back(Object::share(name));
  } else {
    const Object all = Object::checked(PySequence_List(object.get()));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(all.get()); ++i) {
      keys.push_back(Object::share(PyList_GET_ITEM(all.get(), i)));
    }
  }
  Object tuple = Object::checked(PyTuple_New(static_cast<Py_ssize_t>(keys.size())));
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!isConstant(keys[i].get()) &&
        Py_TYPE(keys[i].get())->tp_hash != PyBaseObject_Type.tp_hash) {
      breakGraph(fmt::format("a dict with a key of the class {}", Py_TYPE(keys[i].get())->tp_name));
    }
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), Py_NewRef(keys[i].get()));
  }
  if (Source* from = owner(capture)) {
    capture.guards.add(from, {Check::Kind::kKeys, tuple, 0, {}});
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    Entry* const entry = read(capture, keys[i].get());
    if (entry && !entry->moved) entry->order = static_cast<int64_t>(i);
  }
  // Keys that were set before this are behind them.
  for (Entry& entry : entries_) {
    if (!entry.existed || entry.moved) entry.order += static_cast<int64_t>(keys.size());
  }
  next_order_ += static_cast<int64_t>(keys.size());
  complete_ = true;
}

void DictVariable::noteChange(Capture& capture) {
  capture.use(this);
  capture.modify(this);
}

Variable* DictVariable::find(Capture& capture, PyObject* key) {
  const Entry* const entry = read(capture, key);
  return entry ? entry->value : nullptr;
}

void DictVariable::set(Capture& capture, PyObject* key, Variable* key_variable, Variable* value) {
  PyObject* const descriptor = attributes_of ? findTypeItem(attributes_of, key) : nullptr;
  if (descriptor && Py_TYPE(descriptor)->tp_descr_set) {
    breakGraph("an attribute that its class rules is set in the __dict__");
  }
  noteChange(capture);
  Entry* entry = read(capture, key);
  if (!entry) entry = &add(key, key_variable, nullptr, next_order_++);
  if (!entry->value && entry->existed) {
    entry->moved = true;
    entry->order = next_order_++;
  } else if (!entry->value) {
    entry->order = next_order_++;
  }
  if (!entry->value) {
    ++size_, ++changes_;
    noteKey(*entry, Change::Kind::kAdds);
  }
  entry->value = value;
  entry->changed = true;
  if (!entry->key_variable) entry->key_variable = key_variable;
}

bool DictVariable::erase(Capture& capture, PyObject* key) {
  Entry* const entry = read(capture, key);
  if (!entry || !entry->value) return false;
  noteChange(capture);
  --size_, ++changes_;
  noteKey(*entry, Change::Kind::kDeletes);
  entry->value = nullptr;
  entry->changed = true;
  return true;
}

void DictVariable::noteKey(const Entry& entry, Change::Kind kind) {
  if (object && access_ == Access::kDictItem && !isOrdered()) {
    key_changes_.push_back({static_cast<size_t>(&entry - entries_.data()), kind});
  }
}

std::vector<std::pair<Variable*, Variable*>> DictVariable::items(Capture& capture) {
  readAll(capture);
  std::vector<Entry*> sorted;
  for (Entry& entry : entries_) {
    if (entry.value) sorted.push_back(&entry);
  }
  std::ranges::stable_sort(sorted, {}, [](const Entry* entry) { return entry->order; });
  std::vector<std::pair<Variable*, Variable*>> all;
  for (Entry* entry : sorted) {
    if (!entry->key_variable) entry->key_variable = capture.pinned(entry->key.get());
    all.emplace_back(entry->key_variable, entry->value);
  }
  return all;
}

std::vector<std::pair<Object, Variable*>> DictVariable::entriesMade() const {
  std::vector<const Entry*> sorted;
  for (const Entry& entry : entries_) {
    if (entry.value) sorted.push_back(&entry);
  }
  std::ranges::stable_sort(sorted, {}, [](const Entry* entry) { return entry->order; });
  std::vector<std::pair<Object, Variable*>> all;
  for (const Entry* entry : sorted) all.emplace_back(entry->key, entry->value);
  return all;
}

void DictVariable::clear(Capture& capture) {
  readAll(capture);
  noteChange(capture);
  for (Entry& entry : entries_) {
    if (!entry.value) continue;
    entry.changed = true;
    entry.value = nullptr;
  }
  if (!entries_.empty()) noteKey(entries_[0], Change::Kind::kClears);
  changes_ += size_ != 0;
  size_ = 0;
}

// ---- operations ----

Variable* DictVariable::factory(Capture& capture) {
  if (!object || type_ != defaultDictType()) return default_factory;
  const Object name = Object::checked(PyUnicode_InternFromString("default_factory"));
  const Object found = Object::checked(PyObject_GenericGetAttr(object.get(), name.get()));
  Variable* const maker =
      capture.use(capture.readChild(this, Access::kMember, 0, name.get(), found.get()));
  return maker->constant() == Py_None ? nullptr : maker;
}

Variable* DictVariable::ownAttribute(Capture& capture, PyObject* name) {
  if (type_ != defaultDictType() || !is(name, "default_factory")) return nullptr;
  Variable* const maker = factory(capture);
  return maker ? maker : capture.constant(Py_None);
}

Variable* DictVariable::item(Capture& capture, Variable* key) {
  const Object at = keyOf(capture, key);
  if (Variable* found = find(capture, at.get())) return found;
  if (Variable* const maker = factory(capture)) {
    Variable* const made = callVariable(capture, maker, {});
    set(capture, at.get(), key, made);
    return made;
  }
  capture.raiseWith(PyExc_KeyError, {key});
}

void DictVariable::setItem(Capture& capture, Variable* key, Variable* value) {
  const Object at = keyOf(capture, key);
  if (value) return set(capture, at.get(), key, value);
  if (!erase(capture, at.get())) capture.raiseWith(PyExc_KeyError, {key});
}

int64_t DictVariable::length(Capture& capture) {
  readAll(capture);
  return size_;
}

Variable* DictVariable::iterate(Capture& capture) {
  return capture.make<DictIterator>(capture, this, DictIterator::What::kKeys);
}

bool DictVariable::contains(Capture& capture, Variable* element) {
  return find(capture, keyOf(capture, element).get()) != nullptr;
}

namespace {

PyObject* keysName() {
  static PyObject* const kName = PyUnicode_InternFromString("keys");
  return kName;
}

}  // namespace

void DictVariable::update(Capture& capture, const Arguments& given) {
  // Methods of a derived class are not asked to set.
  for (Variable* each : given.positional) {
    auto* const derived = capture.as<DerivedDictVariable>(each);
    const bool by_keys =
        derived ? derived->overrides("__iter__") : dynamic_cast<InstanceVariable*>(each) != nullptr;
    Variable* const keys = by_keys ? findAttribute(capture, each, keysName()) : nullptr;
    if (keys) {
      Variable* const iterator = iterate_(capture, callVariable(capture, keys, {}));
      while (Variable* key = nextOf(capture, iterator)) {
        DictVariable::setItem(capture, key, getItem(capture, each, key));
      }
      continue;
    }
    if (auto* other = dynamic_cast<DictVariable*>(each)) {
      for (const auto& [key, value] : other->items(capture)) {
        DictVariable::setItem(capture, key, value);
      }
      continue;
    }
    Variable* const iterator = iterate_(capture, each);
    while (Variable* element = nextOf(capture, iterator)) {
      const auto [key, value] = pairOf(capture, element);
      DictVariable::setItem(capture, key, value);
    }
  }
  for (const auto& [name, value] : given.keywords) {
    DictVariable::setItem(capture, capture.constant(name.get()), value);
  }
}

Variable* DictVariable::pop(Capture& capture, const Arguments& given) {
  const Object at = keyOf(capture, given.positional[0]);
  if (Variable* found = find(capture, at.get())) {
    erase(capture, at.get());
    return found;
  }
  if (given.positional.size() > 1) return given.positional[1];
  capture.raiseWith(PyExc_KeyError, {given.positional[0]});
}

Variable* DictVariable::popItem(Capture& capture, const Arguments& given) {
  bool last = true;
  if (!given.keywords.empty() || !given.positional.empty()) {
    Variable* const asked = argument(given, 0, "last");
    if (!isOrdered() || !asked || given.positional.size() + given.keywords.size() != 1) {
      return nullptr;
    }
    last = truthOf(capture, asked);
  }
  const auto all = items(capture);
  if (all.empty()) {
    capture.raise(PyExc_KeyError,
                  isOrdered() ? "dictionary is empty" : "popitem(): dictionary is empty");
  }
  const auto [key, value] = last ? all.back() : all.front();
  erase(capture, keyOf(capture, key).get());
  return capture.make<TupleVariable>(std::vector<Variable*>{key, value}, &PyTuple_Type);
}

// All entries are set again, so that their order holds for a dict that existed.
void DictVariable::moveToEnd(Capture& capture, const Arguments& given) {
  Variable* const key = argument(given, 0, "key");
  Variable* const last = argument(given, 1, "last");
  if (!key || given.positional.size() + given.keywords.size() > 2) {
    breakGraph("move_to_end() with arguments that do not fit");
  }
  const bool to_end = !last || truthOf(capture, last);
  const Object at = keyOf(capture, key);
  readAll(capture);
  Entry* const moved = read(capture, at.get());
  if (!moved || !moved->value) capture.raiseWith(PyExc_KeyError, {key});
  noteChange(capture);
  ++changes_;
  moved->order = to_end ? next_order_++ : --first_order_;
  for (Entry& entry : entries_) entry.moved = entry.changed = true;
}

Variable* DictVariable::callMethod(Capture& capture, const std::string& name,
                                   const Arguments& given) {
  const size_t count = given.positional.size();
  const auto none = [&] { return capture.constant(Py_None); };
  using What = DictIterator::What;
  if (name == "update") return update(capture, given), none();
  if (isOrdered() && name == "move_to_end") return moveToEnd(capture, given), none();
  if (name == "popitem") return popItem(capture, given);
  if (!given.keywords.empty()) return nullptr;
  if (name == "get" && (count == 1 || count == 2)) {
    Variable* const found = find(capture, keyOf(capture, given.positional[0]).get());
    return found ? found : count == 2 ? given.positional[1] : none();
  }
  if (name == "setdefault" && (count == 1 || count == 2)) {
    const Object at = keyOf(capture, given.positional[0]);
    if (Variable* found = find(capture, at.get())) return found;
    Variable* const value = count == 2 ? given.positional[1] : none();
    return set(capture, at.get(), given.positional[0], value), value;
  }
  if (name == "pop" && (count == 1 || count == 2)) return pop(capture, given);
  if (name == "clear" && count == 0) return clear(capture), none();
  if ((name == "copy" || (name == "__copy__" && type_ == defaultDictType())) && count == 0) {
    auto* made = capture.make<DictVariable>(copiesItsClass() ? type_ : &PyDict_Type);
    made->default_factory = factory(capture);
    for (const auto& [key, value] : items(capture)) made->setItem(capture, key, value);
    return made;
  }
  if (count != 0) return nullptr;
  if (name == "keys") return capture.make<DictView>(this, What::kKeys);
  if (name == "values") return capture.make<DictView>(this, What::kValues);
  if (name == "items") return capture.make<DictView>(this, What::kItems);
  return nullptr;
}

// ---- recipes ----

std::vector<int> DictVariable::buildParts(Builder& builder) const {
  std::vector<const Entry*> sorted;
  for (const Entry& entry : entries_) {
    if (entry.value) sorted.push_back(&entry);
  }
  std::ranges::stable_sort(sorted, {}, [](const Entry* entry) { return entry->order; });
  std::vector<int> parts;
  for (const Entry* entry : sorted) {
    parts.push_back(entry->key_variable ? builder.build(entry->key_variable)
                                        : builder.constant(entry->key.get()));
    parts.push_back(builder.build(entry->value));
  }
  return parts;
}

void DictVariable::buildItems(Builder& builder, int made) const {
  const std::vector<int> parts = buildParts(builder);
  for (size_t i = 0; i < parts.size(); i += 2) {
    builder.effect(StepKind::kSetItem, {made, parts[i], parts[i + 1]});
  }
}

int DictVariable::build(Builder& builder) {
  if (holder_) breakGraph("the __dict__ of an object is kept");
  if (type_ == &PyDict_Type) return builder.make(StepKind::kDict, buildParts(builder));
  std::vector<int> call{builder.constant(reinterpret_cast<PyObject*>(type_))};
  if (default_factory) call.push_back(builder.build(default_factory));
  const int made = builder.make(StepKind::kCall, std::move(call));
  buildItems(builder, made);
  return made;
}

// Adds and deletes keys as the program did. Keys that are deleted again get None meanwhile.
void DictVariable::replayKeys(Builder& builder, int target) {
  const size_t none = key_changes_.size();
  std::vector<size_t> last(entries_.size(), none);
  for (size_t i = 0; i < none; ++i) {
    if (key_changes_[i].kind == Change::Kind::kClears) {
      std::ranges::fill(last, i);
    } else {
      last[key_changes_[i].entry] = i;
    }
  }
  const auto keyOf = [&](const Entry& entry) {
    return entry.key_variable ? builder.build(entry.key_variable)
                              : builder.constant(entry.key.get());
  };
  const Object name = Object::checked(PyUnicode_InternFromString("clear"));
  for (size_t i = 0; i < none; ++i) {
    const auto& [number, kind] = key_changes_[i];
    if (kind == Change::Kind::kClears) {
      builder.effect(StepKind::kCall,
                     {builder.constant(findTypeItem(&PyDict_Type, name.get())), target});
      continue;
    }
    const Entry& entry = entries_[number];
    const int key = keyOf(entry);
    if (kind == Change::Kind::kDeletes) {
      builder.effect(StepKind::kDeleteItem, {target, key});
    } else {
      const bool stays = last[number] == i;
      const int value = stays ? builder.build(entry.value) : builder.constant(Py_None);
      builder.effect(StepKind::kSetItem, {target, key, value});
    }
  }
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    if (!entry.changed || last[i] < none) continue;
    const int key = keyOf(entry);
    builder.effect(StepKind::kSetItem, {target, key, builder.build(entry.value)});
  }
}

void DictVariable::replay(Capture&, Builder& builder) {
  const int target = builder.build(holder_ ? holder_ : this);
  if (!key_changes_.empty()) return replayKeys(builder, target);
  std::vector<Entry*> sorted;
  for (Entry& entry : entries_) {
    if (entry.changed) sorted.push_back(&entry);
  }
  std::ranges::stable_sort(sorted, {}, [](const Entry* entry) { return entry->order; });
  struct Steps {
    StepKind set, erase;
  };
  const Steps steps = access_ == Access::kInstanceItem
                          ? Steps{StepKind::kSetInstanceItem, StepKind::kDeleteInstanceItem}
                          : Steps{StepKind::kSetItem, StepKind::kDeleteItem};
  const bool by_name = access_ != Access::kDictItem;
  for (const Entry* entry : sorted) {
    if (!entry->existed || (entry->value && !entry->moved)) continue;
    if (by_name) {
      builder.effect(steps.erase, {target}, entry->key);
    } else {
      builder.effect(steps.erase, {target, builder.constant(entry->key.get())});
    }
  }
  for (const Entry* entry : sorted) {
    if (!entry->value) continue;
    const int value = builder.build(entry->value);
    if (by_name) {
      builder.effect(steps.set, {target, value}, entry->key);
    } else {
      const int key = entry->key_variable ? builder.build(entry->key_variable)
                                          : builder.constant(entry->key.get());
      builder.effect(steps.set, {target, key, value});
    }
  }
}

}  // namespace wick::capture
