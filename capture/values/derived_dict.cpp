#include "capture/values/derived_dict.h"

#include <fmt/format.h>

#include <algorithm>

#include "capture/bytecode/instance.h"
#include "capture/effects/builder.h"
#include "capture/evaluate/capture.h"
#include "capture/evaluate/protocol.h"
#include "capture/values/constant.h"
#include "capture/values/sequence.h"

namespace wick::capture {
namespace {

Object nameOf(const char* text) {
  return Object::checked(PyUnicode_InternFromString(text));
}

}  // namespace

bool isDerivedDict(PyTypeObject* type) {
  PyTypeObject* native = type;
  while (native && (native->tp_flags & Py_TPFLAGS_HEAPTYPE)) native = native->tp_base;
  return native == &PyDict_Type && type != native;
}

bool DerivedDictVariable::overrides(const char* name) const {
  const Object text = nameOf(name);
  return findTypeItem(type(), text.get()) != findTypeItem(&PyDict_Type, text.get());
}

// ---- attributes ----

DictVariable* DerivedDictVariable::attributes(Capture& capture) {
  if (!attributes_) {
    if (type()->tp_dictoffset == 0) {
      breakGraph(fmt::format("the attributes of {}", describe(*this)));
    }
    attributes_ =
        object ? capture.attributesOf(this) : capture.make<DictVariable>(&PyDict_Type, this);
    attributes_->attributes_of = type();
  }
  return attributes_;
}

Variable* DerivedDictVariable::ownAttribute(Capture& capture, PyObject* name) {
  return is(name, "__dict__") ? attributes(capture) : nullptr;
}

void DerivedDictVariable::setAttribute(Capture& capture, PyObject* name, Variable* value) {
  if (overrides(value ? "__setattr__" : "__delattr__")) {
    std::vector<Variable*> given{capture.constant(name)};
    if (value) given.push_back(value);
    callSpecial(capture, this, value ? "__setattr__" : "__delattr__", std::move(given));
    return;
  }
  PyObject* const descriptor = findTypeItem(type(), name);
  if (descriptor && Py_TYPE(descriptor)->tp_descr_set) {
    if (setByDescriptor(capture, descriptor, this, value)) return;
    return Variable::setAttribute(capture, name, value);
  }
  if (value) return attributes(capture)->set(capture, name, nullptr, value);
  if (!attributes(capture)->erase(capture, name)) {
    capture.raise(PyExc_AttributeError, PyUnicode_AsUTF8(name));
  }
}

Variable* DerivedDictVariable::call(Capture& capture, const Arguments& given) {
  PyObject* const found = specialMethod(*this, "__call__");
  if (!found) return Variable::call(capture, given);
  return callVariable(capture, bindAttribute(capture, found, this, type()), given);
}

// ---- operations ----

Variable* DerivedDictVariable::plainItem(Capture& capture, Variable* key) {
  const Object at = keyOf(capture, key);
  if (Variable* found = find(capture, at.get())) return found;
  if (Variable* found = callSpecial(capture, this, "__missing__", {key})) return found;
  capture.raiseWith(PyExc_KeyError, {key});
}

Variable* DerivedDictVariable::item(Capture& capture, Variable* key) {
  if (overrides("__getitem__")) return callSpecial(capture, this, "__getitem__", {key});
  return plainItem(capture, key);
}

void DerivedDictVariable::setItem(Capture& capture, Variable* key, Variable* value) {
  const char* const method = value ? "__setitem__" : "__delitem__";
  if (!overrides(method)) return DictVariable::setItem(capture, key, value);
  std::vector<Variable*> given{key};
  if (value) given.push_back(value);
  callSpecial(capture, this, method, std::move(given));
}

int64_t DerivedDictVariable::length(Capture& capture) {
  if (!overrides("__len__")) return DictVariable::length(capture);
  const int64_t found = integerOf(capture, callSpecial(capture, this, "__len__"));
  if (found < 0) capture.raise(PyExc_ValueError, "__len__() should return >= 0");
  return found;
}

bool DerivedDictVariable::truth(Capture& capture) {
  if (Variable* found = callSpecial(capture, this, "__bool__")) return truthOf(capture, found);
  return length(capture) != 0;
}

Variable* DerivedDictVariable::iterate(Capture& capture) {
  if (overrides("__iter__")) return callSpecial(capture, this, "__iter__");
  return DictVariable::iterate(capture);
}

bool DerivedDictVariable::contains(Capture& capture, Variable* element) {
  if (overrides("__contains__")) {
    return truthOf(capture, callSpecial(capture, this, "__contains__", {element}));
  }
  return DictVariable::contains(capture, element);
}

// Methods of `dict`, which the class inherits or calls by super().
Variable* DerivedDictVariable::callMethod(Capture& capture, const std::string& name,
                                          const Arguments& given) {
  const auto none = [&] { return capture.constant(Py_None); };
  const size_t count = given.positional.size();
  if (name == "__init__" && count <= 1) return update(capture, given), none();
  if (!given.keywords.empty() || !name.starts_with("__")) {
    return DictVariable::callMethod(capture, name, given);
  }
  Variable* const first = count > 0 ? given.positional[0] : nullptr;
  auto* const other = dynamic_cast<DictVariable*>(first);
  const auto absent = [&] { return capture.constant(Py_NotImplemented); };
  if (count == 0) {
    if (name == "__len__") return capture.constantLong(DictVariable::length(capture));
    if (name == "__iter__") return DictVariable::iterate(capture);
    if (name == "__reversed__") {
      std::vector<Variable*> keys;
      for (const auto& [key, value] : items(capture)) keys.push_back(key);
      std::ranges::reverse(keys);
      return capture.make<ListVariable>(std::move(keys))->iterate(capture);
    }
  }
  if (count == 1) {
    if (name == "__getitem__") return plainItem(capture, first);
    if (name == "__delitem__") return DictVariable::setItem(capture, first, nullptr), none();
    if (name == "__contains__") {
      return capture.constantBool(DictVariable::contains(capture, first));
    }
    if (name == "__eq__" || name == "__ne__") {
      if (!other) return absent();
      return compareDicts(capture, name == "__eq__" ? Py_EQ : Py_NE, this, other);
    }
    if (name == "__lt__" || name == "__le__" || name == "__gt__" || name == "__ge__") {
      return absent();
    }
    if (name == "__or__" || name == "__ror__") {
      if (!other) return absent();
      auto* const made = capture.make<DictVariable>(&PyDict_Type);
      made->update(capture, {{name == "__or__" ? this : first}, {}});
      made->update(capture, {{name == "__or__" ? first : this}, {}});
      return made;
    }
    if (name == "__ior__") return update(capture, given), this;
    if (name == "__reduce_ex__" && overrides("__reduce__")) {
      return callSpecial(capture, this, "__reduce__");
    }
  }
  if (name == "__setitem__" && count == 2) {
    return DictVariable::setItem(capture, first, given.positional[1]), none();
  }
  return nullptr;
}

int DerivedDictVariable::build(Builder& builder) {
  static PyObject* const kNew =
      Object::checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyDict_Type), "__new__"))
          .leak();
  const int made =
      builder.make(StepKind::kCall,
                   {builder.constant(kNew), builder.constant(reinterpret_cast<PyObject*>(type()))});
  builder.remember(this, made);
  buildItems(builder, made);
  if (!attributes_) return made;
  for (const auto& [name, value] : attributes_->entriesMade()) {
    builder.effect(StepKind::kSetInstanceItem, {made, builder.build(value)}, name);
  }
  return made;
}

}  // namespace wick::capture
