#include "capture/values/set.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "capture/effects/builder.h"
#include "capture/evaluate/capture.h"
#include "capture/evaluate/protocol.h"
#include "capture/values/constant.h"
#include "capture/values/dict.h"
#include "capture/values/identity.h"
#include "capture/values/iterators.h"
#include "capture/values/sequence.h"

namespace wick::capture {
namespace {

constexpr std::array kChanges{"add",
                              "discard",
                              "remove",
                              "clear",
                              "update",
                              "intersection_update",
                              "difference_update",
                              "symmetric_difference_update",
                              "pop"};
// Methods whose argument is an element.
constexpr std::array kOfElement{"add", "discard", "remove", "__contains__"};
// Methods whose arguments are iterables of elements, or that have none.
constexpr std::array kOfIterables{"clear",
                                  "update",
                                  "intersection_update",
                                  "difference_update",
                                  "symmetric_difference_update",
                                  "pop",
                                  "union",
                                  "intersection",
                                  "difference",
                                  "symmetric_difference",
                                  "isdisjoint",
                                  "issubset",
                                  "issuperset",
                                  "copy",
                                  "__copy__"};

template <size_t kCount>
bool isAmong(const std::array<const char*, kCount>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

// Breaks the graph for an element whose class would be lost: the keys of a set are plain tuples.
void checkElement(const Variable& element) {
  if (dynamic_cast<const TupleVariable*>(&element) && element.type() != &PyTuple_Type) {
    breakGraph(fmt::format("{} in a set", describe(element)));
  }
}

// The elements in the set's order.
Object orderOf(PyObject* set) {
  return Object::checked(PySequence_Tuple(set));
}

}  // namespace

SetVariable::SetVariable(Capture& capture, PyTypeObject* type,
                         const std::vector<Variable*>& elements)
    : type_(type) {
  Object list = Object::checked(PyList_New(0));
  for (Variable* each : elements) {
    checkElement(*each);
    const Object key = keyObject(capture, each);
    if (!isConstant(key.get())) objects_.try_emplace(key.get(), each);
    if (PyList_Append(list.get(), key.get()) < 0) throw PythonError();
  }
  keys_ = capture.concretely([&] {
    return Object::checked(type == &PySet_Type ? PySet_New(list.get())
                                               : PyFrozenSet_New(list.get()));
  });
}

void SetVariable::guard(Capture& capture) {
  if (!source) return;
  capture.guards.add(
      source, {Check::Kind::kType, Object::share(reinterpret_cast<PyObject*>(type_)), 0, {}});
  const Object elements = orderOf(keys_.get());
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(elements.get()); ++i) {
    PyObject* const element = PyTuple_GET_ITEM(elements.get(), i);
    if (isConstant(element)) continue;
    // They live as long as their modules do.
    if (!PyType_Check(element) && !PyFunction_Check(element) && !PyCFunction_Check(element)) {
      breakGraph("a set of values that are not constants");
    }
    Variable* const pinned = capture.pinned(element);
    objects_[keyObject(capture, pinned).get()] = pinned;
  }
  capture.guards.add(source, {Check::Kind::kKeys, elements, 0, {}});
}

PyObject* SetVariable::constant() const {
  return type_ == &PyFrozenSet_Type && !source && objects_.empty() ? keys_.get() : nullptr;
}

void SetVariable::change(Capture& capture, Change made) {
  if (type_ == &PyFrozenSet_Type) breakGraph("a frozenset is changed");
  if (source && !modified) {
    // Others keep seeing the set as it was until the recipe runs.
    const auto* const before = reinterpret_cast<PySetObject*>(keys_.get());
    Object copy = Object::checked(PySet_New(keys_.get()));
    // The order after changes depends on the room that the table has.
    order_known_ = before->mask == reinterpret_cast<PySetObject*>(copy.get())->mask &&
                   before->fill == before->used;
    if (order_known_) {
      capture.guards.add(source, {Check::Kind::kSetTable, {}, before->mask, {}});
    }
    keys_ = std::move(copy);
  }
  if (source) changes_.push_back(std::move(made));
  capture.modify(this);
}

void SetVariable::checkOrder() const {
  if (PySet_GET_SIZE(keys_.get()) <= 1) return;
  const bool unchanged = source && !modified;
  if (!unchanged && (!objects_.empty() || !order_known_)) {
    breakGraph("the order of a set of objects, or of one that was changed before");
  }
}

void SetVariable::add(Capture& capture, Variable* element) {
  checkElement(*element);
  const Object key = keyFor(capture, element);
  if (!isConstant(key.get())) objects_.try_emplace(key.get(), element);
  change(capture, {"add", {key}, objects_});
  if (PySet_Add(keys_.get(), key.get()) < 0) throw PythonError();
}

int64_t SetVariable::length(Capture&) {
  return PySet_GET_SIZE(keys_.get());
}

Variable* SetVariable::iterate(Capture& capture) {
  checkOrder();
  if (!objects_.empty()) {
    std::vector<Variable*> elements;
    const Object order = orderOf(keys_.get());
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(order.get()); ++i) {
      PyObject* const key = PyTuple_GET_ITEM(order.get(), i);
      const auto object = objects_.find(key);
      elements.push_back(object == objects_.end() ? capture.constant(key) : object->second);
    }
    return capture.make<ListVariable>(std::move(elements))->iterate(capture);
  }
  return capture.make<ConstantIterator>(
      Object::checked(PyObject_GetIter(orderOf(keys_.get()).get())));
}

Object SetVariable::keyFor(Capture& capture, Variable* element) const {
  Object key = keyObject(capture, element);
  if (PyLong_Check(key.get())) {
    for (const auto& [object, known] : objects_) checkIds(element, key.get(), known, object);
  }
  if (!dynamic_cast<IdVariable*>(element)) return key;
  const Object elements = orderOf(keys_.get());
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(elements.get()); ++i) {
    PyObject* const known = PyTuple_GET_ITEM(elements.get(), i);
    if (objects_.count(known) == 0) checkIds(element, key.get(), nullptr, known);
  }
  return key;
}

bool SetVariable::contains(Capture& capture, Variable* element) {
  // A set is looked up as the frozenset that is equal.
  if (element->type() == &PySet_Type) breakGraph("a search for a set in a set");
  const Object key = keyFor(capture, element);
  return capture.concretely([&] {
    const int found = PySet_Contains(keys_.get(), key.get());
    if (found < 0) throw PythonError();
    return found != 0;
  });
}

SetVariable* SetVariable::wrap(Capture& capture, Object keys, const Objects& objects) const {
  auto* const made = capture.make<SetVariable>(std::move(keys));
  for (const auto& [key, element] : objects) {
    if (PySet_Contains(made->keys_.get(), key) > 0) made->objects_[key] = element;
  }
  return made;
}

Variable* SetVariable::callMethod(Capture& capture, const std::string& name,
                                  const Arguments& given) {
  if (type_ == &PyFrozenSet_Type && given.empty() && (name == "copy" || name == "__copy__")) {
    return this;
  }
  const bool of_element = isAmong(kOfElement, name);
  if (!given.keywords.empty() || !(of_element || isAmong(kOfIterables, name))) return nullptr;
  if (of_element && given.positional.size() != 1) return nullptr;
  if (name == "add") checkElement(*given.positional[0]);
  if (name == "pop") {
    if (!objects_.empty()) breakGraph("set.pop() of a set of objects");
    checkOrder();
  }
  Objects all = objects_;
  std::vector<Object> kept;
  std::vector<PyObject*> arguments{nullptr};
  for (Variable* each : given.positional) {
    capture.use(each);
    auto* other = dynamic_cast<SetVariable*>(each);
    if (of_element) {
      if (other) breakGraph(fmt::format("{}.{}() of a set", type_->tp_name, name));
      kept.push_back(keyFor(capture, each));
      if (!isConstant(kept.back().get())) all.try_emplace(kept.back().get(), each);
    } else if (other) {
      kept.push_back(other->keys_);
      all.insert(other->objects_.begin(), other->objects_.end());
    } else {
      // The elements are taken in their order, as those of any iterable.
      Object list = Object::checked(PyList_New(0));
      for (Variable* element : elementsOf(capture, each)) {
        checkElement(*element);
        const Object key = keyFor(capture, element);
        if (!isConstant(key.get())) all.try_emplace(key.get(), element);
        if (PyList_Append(list.get(), key.get()) < 0) throw PythonError();
      }
      kept.push_back(std::move(list));
    }
    arguments.push_back(kept.back().get());
  }
  const bool changes = isAmong(kChanges, name);
  if (changes) {
    Change made{name, kept, all};
    for (Object& each : made.arguments) {
      if (PyAnySet_Check(each.get()) && !of_element) each = Object::checked(PySet_New(each.get()));
    }
    change(capture, std::move(made));
  }
  arguments[0] = keys_.get();
  const Object result = capture.concretely([&] {
    const Object text = Object::checked(PyUnicode_FromString(name.c_str()));
    return Object::checked(
        PyObject_VectorcallMethod(text.get(), arguments.data(), arguments.size(), nullptr));
  });
  if (changes) objects_ = wrap(capture, keys_, all)->objects_;
  if (PyAnySet_Check(result.get())) return wrap(capture, result, all);
  return wrapComputed(capture, result);
}

Variable* SetVariable::operate(Capture& capture, std::string_view name, bool in_place,
                               Variable* right) {
  const char* const method = name == "or"    ? "union"
                             : name == "and" ? "intersection"
                             : name == "sub" ? "difference"
                             : name == "xor" ? "symmetric_difference"
                                             : nullptr;
  if (!method || !dynamic_cast<SetVariable*>(right)) return nullptr;
  if (!in_place || type_ == &PyFrozenSet_Type) return callMethod(capture, method, {{right}, {}});
  callMethod(capture, name == "or" ? "update" : std::string(method) + "_update", {{right}, {}});
  return this;
}

int SetVariable::buildKey(Builder& builder, PyObject* key, const Objects& objects) {
  const auto object = objects.find(key);
  return object == objects.end() ? builder.constant(key) : builder.build(object->second);
}

std::vector<int> SetVariable::buildKeys(Builder& builder, PyObject* keys, const Objects& objects) {
  const Object elements = orderOf(keys);
  std::vector<int> parts;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(elements.get()); ++i) {
    parts.push_back(buildKey(builder, PyTuple_GET_ITEM(elements.get(), i), objects));
  }
  return parts;
}

int SetVariable::build(Builder& builder) {
  const Object order = orderOf(keys_.get());
  const Object again = Object::checked(PySet_New(order.get()));
  const auto* const set = reinterpret_cast<PySetObject*>(keys_.get());
  if (objects_.empty() && type_ == &PySet_Type &&
      (reinterpret_cast<PySetObject*>(again.get())->mask != set->mask ||
       PyObject_RichCompareBool(orderOf(again.get()).get(), order.get(), Py_EQ) != 1)) {
    breakGraph("a set whose order depends on elements that were taken out");
  }
  const int made = builder.make(StepKind::kSet, buildKeys(builder, keys_.get(), objects_));
  if (type_ == &PySet_Type) return made;
  return builder.make(StepKind::kCall,
                      {builder.constant(reinterpret_cast<PyObject*>(type_)), made});
}

// Calls the methods again, so that the order becomes the program's.
void SetVariable::replay(Capture&, Builder& builder) {
  const int target = builder.build(this);
  for (const Change& each : changes_) {
    const Object method = Object::checked(
        PyObject_GetAttrString(reinterpret_cast<PyObject*>(type_), each.method.c_str()));
    std::vector<int> call{builder.constant(method.get()), target};
    for (const Object& argument : each.arguments) {
      if (isAmong(kOfElement, each.method)) {
        call.push_back(buildKey(builder, argument.get(), each.objects));
        continue;
      }
      const auto kind = PyAnySet_Check(argument.get()) ? StepKind::kSet : StepKind::kList;
      call.push_back(builder.make(kind, buildKeys(builder, argument.get(), each.objects)));
    }
    builder.make(StepKind::kCall, std::move(call));
  }
}

}  // namespace wick::capture
