#include "capture/values/instance.h"

#include <fmt/format.h>

#include "capture/bytecode/instance.h"
#include "capture/effects/builder.h"
#include "capture/evaluate/builtins.h"
#include "capture/evaluate/capture.h"
#include "capture/evaluate/protocol.h"
#include "capture/values/dict.h"
#include "capture/values/iterators.h"
#include "capture/values/sequence.h"

namespace wick::capture {
void InstanceVariable::guard(Capture& capture) {
  capture.guardType(source, type_);
}

DictVariable* InstanceVariable::attributes(Capture& capture) {
  if (!attributes_) {
    attributes_ =
        object ? capture.attributesOf(this) : capture.make<DictVariable>(&PyDict_Type, this);
    attributes_->attributes_of = type_;
  }
  return attributes_;
}

Variable* InstanceVariable::ownAttribute(Capture& capture, PyObject* name) {
  if (is(name, "__dict__") && type_->tp_dictoffset != 0) return attributes(capture);
  return nullptr;
}

Variable* InstanceVariable::member(Capture& capture, PyObject* name) {
  for (const Slot& slot : slots_) {
    if (PyUnicode_Compare(slot.name.get(), name) != 0) continue;
    if (slot.value) return slot.value;
    capture.raise(PyExc_AttributeError, PyUnicode_AsUTF8(name));
  }
  if (!object) capture.raise(PyExc_AttributeError, PyUnicode_AsUTF8(name));
  const Object found = Object::own(PyObject_GenericGetAttr(object.get(), name));
  if (!found) {
    PyErr_Clear();
    breakGraph(fmt::format("'{}' of {} is not set", PyUnicode_AsUTF8(name), describe(*this)));
  }
  Variable* const value = capture.readChild(this, Access::kMember, 0, name, found.get());
  slots_.push_back({Object::share(name), value, false});
  return value;
}

void InstanceVariable::setPlainly(Capture& capture, PyObject* name, Variable* value) {
  PyObject* const descriptor = findTypeItem(type_, name);
  if (descriptor && Py_TYPE(descriptor)->tp_descr_set) {
    if (setByDescriptor(capture, descriptor, this, value)) return;
    if (!PyObject_TypeCheck(descriptor, &PyMemberDescr_Type)) {
      breakGraph(fmt::format("setting '{}' of {}", PyUnicode_AsUTF8(name), describe(*this)));
    }
    for (Slot& slot : slots_) {
      if (PyUnicode_Compare(slot.name.get(), name) != 0) continue;
      slot.value = value;
      slot.changed = true;
      return capture.modify(this);
    }
    slots_.push_back({Object::share(name), value, true});
    return capture.modify(this);
  }
  if (type_->tp_dictoffset == 0) {
    capture.raise(PyExc_AttributeError, descriptor
                                            ? fmt::format("'{}' object attribute '{}' is read-only",
                                                          type_->tp_name, PyUnicode_AsUTF8(name))
                                            : fmt::format("'{}' object has no attribute '{}'",
                                                          type_->tp_name, PyUnicode_AsUTF8(name)));
  }
  if (value) return attributes(capture)->set(capture, name, nullptr, value);
  if (!attributes(capture)->erase(capture, name)) {
    capture.raise(PyExc_AttributeError, PyUnicode_AsUTF8(name));
  }
}

void InstanceVariable::setAttribute(Capture& capture, PyObject* name, Variable* value) {
  const char* const method = value ? "__setattr__" : "__delattr__";
  const Object text = Object::checked(PyUnicode_InternFromString(method));
  PyObject* const own = findTypeItem(type_, text.get());
  if (own == findTypeItem(&PyBaseObject_Type, text.get()) ||
      type_->tp_setattro == PyObject_GenericSetAttr) {
    return setPlainly(capture, name, value);
  }
  Variable::setAttribute(capture, name, value);
}

Variable* InstanceVariable::call(Capture& capture, const Arguments& given) {
  if (object) {
    if (Variable* known = callBuiltin(capture, object.get(), given)) {
      if (source) capture.guards.add(source, {Check::Kind::kIdentity, object, 0, {}});
      return known;
    }
  }
  PyObject* const found = specialMethod(*this, "__call__");
  if (!found) {
    capture.raise(PyExc_TypeError, fmt::format("'{}' object is not callable", type_->tp_name));
  }
  return callVariable(capture, bindAttribute(capture, found, this, type_), given);
}

Variable* InstanceVariable::callMethod(Capture& capture, const std::string& name,
                                       const Arguments& given) {
  // Methods of `object`.
  if (name == "__setattr__" && given.positional.size() == 2) {
    PyObject* const attribute = given.positional[0]->constant();
    if (!attribute) return nullptr;
    return setPlainly(capture, attribute, given.positional[1]), capture.constant(Py_None);
  }
  if (name == "__delattr__" && given.positional.size() == 1) {
    PyObject* const attribute = given.positional[0]->constant();
    if (!attribute) return nullptr;
    return setPlainly(capture, attribute, nullptr), capture.constant(Py_None);
  }
  if (name == "__getattribute__" && given.positional.size() == 1) {
    PyObject* const attribute = given.positional[0]->constant();
    if (!attribute) return nullptr;
    return getPlainly(capture, this, attribute);
  }
  if (name == "__reduce_ex__" && given.positional.size() == 1) return reduced(capture, given);
  if (name == "__init__") return capture.constant(Py_None);
  if (name == "__init_subclass__") return capture.constant(Py_None);
  return nullptr;
}

// The parts that copies are made of, as object.__reduce_ex__ tells them.
Variable* InstanceVariable::reduced(Capture& capture, const Arguments& given) {
  constexpr int kNewest = 4;
  PyObject* const protocol = given.positional[0]->constant();
  if (!protocol || !PyLong_CheckExact(protocol) || PyLong_AsLong(protocol) != kNewest) {
    return nullptr;
  }
  for (const char* name : {"__reduce__", "__getstate__"}) {
    const Object text = Object::checked(PyUnicode_InternFromString(name));
    if (specialMethod(*this, name) != findTypeItem(&PyBaseObject_Type, text.get())) return nullptr;
  }
  if (specialMethod(*this, "__getnewargs__") || specialMethod(*this, "__getnewargs_ex__") ||
      specialMethod(*this, "__slots__") || type_->tp_dictoffset == 0) {
    return nullptr;
  }
  Variable* const none = capture.constant(Py_None);
  Variable* const type = capture.pinned(reinterpret_cast<PyObject*>(type_));
  Variable* const state = attributes(capture)->length(capture) == 0 ? none : attributes_;
  return capture.make<TupleVariable>(
      std::vector<Variable*>{
          capture.pinned(libraryObject("copyreg", "__newobj__")),
          capture.make<TupleVariable>(std::vector<Variable*>{type}, &PyTuple_Type), state, none,
          none},
      &PyTuple_Type);
}

Variable* InstanceVariable::item(Capture& capture, Variable* key) {
  if (Variable* found = callSpecial(capture, this, "__getitem__", {key})) return found;
  capture.raise(PyExc_TypeError, fmt::format("'{}' object is not subscriptable", type_->tp_name));
}

void InstanceVariable::setItem(Capture& capture, Variable* key, Variable* value) {
  if (value ? callSpecial(capture, this, "__setitem__", {key, value})
            : callSpecial(capture, this, "__delitem__", {key})) {
    return;
  }
  capture.raise(PyExc_TypeError, fmt::format("'{}' object {}", type_->tp_name,
                                             value ? "does not support item assignment"
                                                   : "doesn't support item deletion"));
}

int64_t InstanceVariable::length(Capture& capture) {
  Variable* const found = callSpecial(capture, this, "__len__");
  if (!found) {
    capture.raise(PyExc_TypeError, fmt::format("object of type '{}' has no len()", type_->tp_name));
  }
  PyObject* const number = capture.use(found)->constant();
  if (!number || !PyLong_Check(number)) breakGraph("a __len__ that gives no int");
  return PyLong_AsLongLong(number);
}

bool InstanceVariable::truth(Capture& capture) {
  if (Variable* found = callSpecial(capture, this, "__bool__")) return truthOf(capture, found);
  return specialMethod(*this, "__len__") ? length(capture) != 0 : true;
}

Variable* InstanceVariable::iterate(Capture& capture) {
  if (Variable* found = callSpecial(capture, this, "__iter__")) return found;
  if (specialMethod(*this, "__getitem__")) return capture.make<ItemIterator>(this);
  capture.raise(PyExc_TypeError, fmt::format("'{}' object is not iterable", type_->tp_name));
}

Variable* InstanceVariable::next(Capture& capture) {
  try {
    Variable* const found = callSpecial(capture, this, "__next__");
    if (!found) {
      capture.raise(PyExc_TypeError, fmt::format("'{}' object is not an iterator", type_->tp_name));
    }
    return found;
  } catch (const Raised& raised) {
    if (PyType_IsSubtype(raised.exception->type(),
                         reinterpret_cast<PyTypeObject*>(PyExc_StopIteration))) {
      return nullptr;
    }
    throw;
  }
}

bool InstanceVariable::contains(Capture& capture, Variable* element) {
  if (Variable* found = callSpecial(capture, this, "__contains__", {element})) {
    return truthOf(capture, found);
  }
  Variable* const iterator = iterate(capture);
  while (Variable* each = nextOf(capture, iterator)) {
    if (isEqual(capture, each, element)) return true;
  }
  return false;
}

int InstanceVariable::build(Builder& builder) {
  const int made =
      builder.make(StepKind::kNew, {builder.constant(reinterpret_cast<PyObject*>(type_))});
  builder.remember(this, made);
  if (attributes_) {
    for (const auto& [name, value] : attributes_->entriesMade()) {
      builder.effect(StepKind::kSetInstanceItem, {made, builder.build(value)}, name);
    }
  }
  for (const Slot& slot : slots_) {
    if (!slot.value) continue;
    builder.effect(StepKind::kSetInstanceItem, {made, builder.build(slot.value)}, slot.name);
  }
  return made;
}

void InstanceVariable::replay(Capture&, Builder& builder) {
  const int target = builder.build(this);
  for (const Slot& slot : slots_) {
    if (!slot.changed) continue;
    if (slot.value) {
      builder.effect(StepKind::kSetInstanceItem, {target, builder.build(slot.value)}, slot.name);
    } else {
      builder.effect(StepKind::kDeleteInstanceItem, {target}, slot.name);
    }
  }
}

// ---- exceptions ----

Variable* PropertyVariable::ownAttribute(Capture&, PyObject* name) {
  breakGraph(fmt::format("'{}' of a property that the program makes", PyUnicode_AsUTF8(name)));
}

void PropertyVariable::setAttribute(Capture&, PyObject* name, Variable*) {
  breakGraph(fmt::format("'{}' of a property that the program makes", PyUnicode_AsUTF8(name)));
}

int PropertyVariable::build(Builder&) {
  breakGraph(fmt::format("{} is kept beyond the graph", describe(*this)));
}

Variable* ExceptionVariable::ownAttribute(Capture& capture, PyObject* name) {
  const auto orNone = [&](Variable* value) { return value ? value : capture.constant(Py_None); };
  if (is(name, "args")) return capture.make<TupleVariable>(args, &PyTuple_Type);
  if (is(name, "__cause__")) return orNone(cause);
  if (is(name, "__context__")) return orNone(context);
  if (is(name, "__suppress_context__")) return capture.constantBool(suppress_context);
  if (is(name, "__traceback__")) breakGraph("the traceback of an exception");
  for (PyObject* type : {PyExc_NameError, PyExc_AttributeError}) {
    // The interpreter names the attribute where it raises the exception.
    if (!PyType_IsSubtype(type_, reinterpret_cast<PyTypeObject*>(type))) continue;
    if (is(name, "name") || is(name, "obj"))
      return slots_.empty() ? capture.constant(Py_None) : member(capture, name);
  }
  if (is(name, "value") && type_ == reinterpret_cast<PyTypeObject*>(PyExc_StopIteration)) {
    return orNone(args.empty() ? nullptr : args[0]);
  }
  return InstanceVariable::ownAttribute(capture, name);
}

void ExceptionVariable::setAttribute(Capture& capture, PyObject* name, Variable* value) {
  if (is(name, "args")) breakGraph("the arguments of an exception are set");
  if (is(name, "__cause__")) {
    cause = value;
    suppress_context = true;
    return;
  }
  if (is(name, "__context__")) {
    context = value;
    return;
  }
  if (is(name, "__traceback__")) {
    auto* const traceback = value ? dynamic_cast<TracebackVariable*>(value) : nullptr;
    if (!traceback) breakGraph("the traceback of an exception is set");
    return traceback->restore(this);
  }
  InstanceVariable::setAttribute(capture, name, value);
}

int ExceptionVariable::build(Builder& builder) {
  const Object maker = Object::checked(PyObject_GetAttrString(PyExc_BaseException, "__new__"));
  std::vector<int> parts{builder.constant(maker.get()),
                         builder.constant(reinterpret_cast<PyObject*>(type_))};
  for (const int each : builder.buildAll(args)) parts.push_back(each);
  const int made = builder.make(StepKind::kCall, std::move(parts));
  builder.remember(this, made);
  for (const Passed& each : passed) {
    builder.effect(StepKind::kTraceback, {made}, each.code, each.line);
  }
  const auto set = [&](const char* name, Variable* value) {
    if (!value) return;
    builder.effect(StepKind::kSetInstanceItem, {made, builder.build(value)},
                   Object::checked(PyUnicode_InternFromString(name)));
  };
  set("__context__", context);
  if (raised_alone) builder.effect(StepKind::kContext, {made});
  set("__cause__", cause);
  if (suppress_context && !cause) {
    builder.effect(StepKind::kSetInstanceItem, {made, builder.constant(Py_True)},
                   Object::checked(PyUnicode_InternFromString("__suppress_context__")));
  }
  for (const Slot& slot : slots_) {
    if (!slot.value) continue;
    builder.effect(StepKind::kSetInstanceItem, {made, builder.build(slot.value)}, slot.name);
  }
  if (!attributes_) return made;
  for (const auto& [name, value] : attributes_->entriesMade()) {
    builder.effect(StepKind::kSetInstanceItem, {made, builder.build(value)}, name);
  }
  return made;
}

int TracebackVariable::build(Builder&) {
  breakGraph("the traceback of an exception is kept");
}

void TracebackVariable::restore(const ExceptionVariable* exception) {
  if (!of_ || of_ != exception || of_->passed.size() < length_) {
    breakGraph("the traceback of another exception is set");
  }
  of_->passed.resize(length_);
}

// ---- super ----

Variable* SuperVariable::ownAttribute(Capture& capture, PyObject* name) {
  PyObject* const order = of_->tp_mro;
  Py_ssize_t i = 0;
  const Py_ssize_t count = PyTuple_GET_SIZE(order);
  while (i < count && PyTuple_GET_ITEM(order, i) != reinterpret_cast<PyObject*>(after_)) ++i;
  for (++i; i < count; ++i) {
    auto* const base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(order, i));
    PyObject* const found = PyDict_GetItemWithError(base->tp_dict, name);
    if (found) return bindAttribute(capture, found, self_, of_);
  }
  capture.raise(PyExc_AttributeError,
                fmt::format("'super' object has no attribute '{}'", PyUnicode_AsUTF8(name)));
}

int SuperVariable::build(Builder& builder) {
  return builder.make(
      StepKind::kCall,
      {builder.constant(reinterpret_cast<PyObject*>(&PySuper_Type)),
       builder.constant(reinterpret_cast<PyObject*>(after_)), builder.build(self_)});
}

}  // namespace wick::capture
