#include "capture/values/set.h"

#include <fmt/format.h>

#include "capture/effects/builder.h"
#include "capture/evaluate/capture.h"
#include "capture/evaluate/protocol.h"
#include "capture/values/constant.h"
#include "capture/values/iterators.h"

namespace wick::capture {
namespace {

Object constantElement(Capture& capture, Variable* element) {
  Object found = capture.objectFor(element);
  if (!isConstant(found.get())) breakGraph(fmt::format("{} in a set", describe(*element)));
  return found;
}

// The elements in the set's order.
Object elementsOf(PyObject* set) {
  return Object::checked(PySequence_Tuple(set));
}

}  // namespace

void SetVariable::guard(Capture& capture) {
  if (!source) return;
  capture.guards.add(
      source, {Check::Kind::kType, Object::share(reinterpret_cast<PyObject*>(type_)), 0, {}});
  const Object elements = elementsOf(set_.get());
  if (!isConstant(elements.get())) breakGraph("a set of values that are not constants");
  capture.guards.add(source, {Check::Kind::kKeys, elements, 0, {}});
}

PyObject* SetVariable::constant() const {
  return type_ == &PyFrozenSet_Type && !source ? set_.get() : nullptr;
}

void SetVariable::change(Capture& capture) {
  if (type_ == &PyFrozenSet_Type) breakGraph("a frozenset is changed");
  // Others keep seeing the set as it was until the recipe runs.
  if (source && !modified) set_ = Object::checked(PySet_New(set_.get()));
  capture.modify(this);
}

void SetVariable::add(Capture& capture, Variable* element) {
  const Object object = constantElement(capture, element);
  change(capture);
  if (PySet_Add(set_.get(), object.get()) < 0) throw PythonError();
}

int64_t SetVariable::length(Capture&) {
  return PySet_GET_SIZE(set_.get());
}

Variable* SetVariable::iterate(Capture& capture) {
  return capture.make<ConstantIterator>(
      Object::checked(PyObject_GetIter(elementsOf(set_.get()).get())));
}

bool SetVariable::contains(Capture& capture, Variable* element) {
  const Object object = constantElement(capture, element);
  return capture.concretely([&] {
    const int found = PySet_Contains(set_.get(), object.get());
    if (found < 0) throw PythonError();
    return found != 0;
  });
}

Variable* SetVariable::callMethod(Capture& capture, const std::string& name,
                                  const Arguments& given) {
  if (!given.keywords.empty()) return nullptr;
  std::vector<Object> kept;
  std::vector<PyObject*> objects{nullptr};
  for (Variable* each : given.positional) {
    // Iterables of constants are taken as tuples.
    capture.use(each);
    if (auto* other = dynamic_cast<SetVariable*>(each)) {
      kept.push_back(other->set_);
    } else {
      kept.push_back(capture.objectFor(each));
    }
    if (PyList_CheckExact(kept.back().get())) {
      kept.back() = Object::checked(PySequence_Tuple(kept.back().get()));
    }
    if (!isConstant(kept.back().get()) && !PyAnySet_Check(kept.back().get())) {
      breakGraph(fmt::format("{}.{}() with values that are not constants", type_->tp_name, name));
    }
    objects.push_back(kept.back().get());
  }
  static constexpr const char* kChanges[] = {"add",
                                             "discard",
                                             "remove",
                                             "clear",
                                             "update",
                                             "intersection_update",
                                             "difference_update",
                                             "symmetric_difference_update",
                                             "pop"};
  for (const char* each : kChanges) {
    if (name == each) change(capture);
  }
  objects[0] = set_.get();
  return capture.concretely([&]() -> Variable* {
    const Object text = Object::checked(PyUnicode_FromString(name.c_str()));
    return wrapComputed(capture, Object::checked(PyObject_VectorcallMethod(
                                     text.get(), objects.data(), objects.size(), nullptr)));
  });
}

int SetVariable::build(Builder& builder) {
  const Object elements = elementsOf(set_.get());
  std::vector<int> parts;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(elements.get()); ++i) {
    parts.push_back(builder.constant(PyTuple_GET_ITEM(elements.get(), i)));
  }
  const int made = builder.make(StepKind::kSet, std::move(parts));
  if (type_ == &PySet_Type) return made;
  return builder.make(StepKind::kCall,
                      {builder.constant(reinterpret_cast<PyObject*>(type_)), made});
}

void SetVariable::replay(Capture&, Builder& builder) {
  std::vector<int> parts{builder.build(this)};
  const Object elements = elementsOf(set_.get());
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(elements.get()); ++i) {
    parts.push_back(builder.constant(PyTuple_GET_ITEM(elements.get(), i)));
  }
  builder.effect(StepKind::kReplaceSet, std::move(parts));
}

}  // namespace wick::capture
