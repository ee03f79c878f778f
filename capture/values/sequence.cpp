#include "capture/values/sequence.h"

#include <fmt/format.h>
#include <structmember.h>

#include <algorithm>

#include "capture/bytecode/instance.h"
#include "capture/effects/builder.h"
#include "capture/evaluate/capture.h"
#include "capture/evaluate/protocol.h"
#include "capture/values/iterators.h"
#include "capture/values/size.h"

namespace wick::capture {

int64_t indexOf(Capture& capture, Variable* key, int64_t length) {
  PyObject* const object = key->constant();
  if (!object) breakGraph(fmt::format("an index that is {}", describe(*key)));
  const Py_ssize_t index = capture.concretely([&] {
    const Py_ssize_t found = PyNumber_AsSsize_t(object, PyExc_IndexError);
    if (found == -1 && PyErr_Occurred()) throw PythonError();
    return found;
  });
  const int64_t from_start = index < 0 ? index + length : index;
  return from_start < 0 || from_start >= length ? -1 : from_start;
}

bool isPlainTuple(PyTypeObject* type) {
  for (const char* name : {"__getitem__", "__iter__", "__len__", "__contains__", "__eq__",
                           "__getattribute__", "__add__", "__mul__"}) {
    const Object text = Object::checked(PyUnicode_InternFromString(name));
    PyObject* const found = findTypeItem(type, text.get());
    if (found && PyFunction_Check(found)) return false;
  }
  return true;
}

// ---- sequences ----

SequenceVariable::SequenceVariable(Object existing, Access access)
    : elements_(static_cast<size_t>(PySequence_Fast_GET_SIZE(existing.get()))), access_(access) {
  object = std::move(existing);
}

void SequenceVariable::guard(Capture& capture) {
  if (!source) return;
  capture.guards.add(
      source, {Check::Kind::kType, Object::share(reinterpret_cast<PyObject*>(type())), 0, {}});
  capture.guards.add(source, {Check::Kind::kLength, {}, size(), {}});
}

int64_t SequenceVariable::length(Capture&) {
  return size();
}

Variable* SequenceVariable::at(Capture& capture, int64_t index) {
  Variable*& found = elements_[static_cast<size_t>(index)];
  if (!found) {
    found = capture.readChild(this, access_, index, nullptr,
                              PySequence_Fast_GET_ITEM(object.get(), index));
  }
  return found;
}

std::vector<Variable*> SequenceVariable::all(Capture& capture) {
  for (int64_t i = 0; i < size(); ++i) at(capture, i);
  return elements_;
}

Variable* SequenceVariable::item(Capture& capture, Variable* key) {
  PyObject* const object = key->constant();
  if (object && PySlice_Check(object)) {
    Py_ssize_t start = 0, stop = 0, step = 0;
    const Py_ssize_t count = capture.concretely([&] {
      if (PySlice_Unpack(object, &start, &stop, &step) < 0) throw PythonError();
      return PySlice_AdjustIndices(size(), &start, &stop, step);
    });
    std::vector<Variable*> chosen;
    for (Py_ssize_t i = 0; i < count; ++i) chosen.push_back(at(capture, start + i * step));
    return sliceOf(capture, std::move(chosen));
  }
  if (object && !PyIndex_Check(object)) {
    capture.raise(PyExc_TypeError, fmt::format("{} indices must be integers or slices, not {}",
                                               access_ == Access::kListItem ? "list" : "tuple",
                                               Py_TYPE(object)->tp_name));
  }
  const int64_t index = indexOf(capture, key, size());
  if (index < 0) {
    capture.raise(PyExc_IndexError,
                  access_ == Access::kListItem && PyType_IsSubtype(type(), &PyList_Type)
                      ? "list index out of range"
                      : "tuple index out of range");
  }
  return at(capture, index);
}

Variable* SequenceVariable::iterate(Capture& capture) {
  return capture.make<SequenceIterator>(this);
}

int64_t SequenceVariable::find(Capture& capture, Variable* element, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < std::min(end, size()); ++i) {
    if (isEqual(capture, at(capture, i), element)) return i;
  }
  return -1;
}

bool SequenceVariable::contains(Capture& capture, Variable* element) {
  return find(capture, element, 0, size()) >= 0;
}

// ---- tuples ----

namespace {

// Returns whether the class is a tuple of C with named members, as those of the module `time`.
bool isStructSequence(PyTypeObject* type) {
  static const Object& kMark =
      forever(Object::checked(PyUnicode_InternFromString("n_sequence_fields")));
  return type->tp_base == &PyTuple_Type && findTypeItem(type, kMark.get()) != nullptr;
}

}  // namespace

bool isMadeByItself(PyTypeObject* type) {
  return !(type->tp_flags & Py_TPFLAGS_HEAPTYPE) || isStructSequence(type);
}

PyObject* TupleVariable::constant() const {
  if (asked_) return constant_.get();
  if (source || type_ != &PyTuple_Type || holdsSizes(this)) return nullptr;
  Object made = Object::checked(PyTuple_New(size()));
  for (int64_t i = 0; i < size(); ++i) {
    Variable* const element = elements_[static_cast<size_t>(i)];
    // Elements from sources are constants only once they are guarded.
    PyObject* const each =
        element && (element->used || !element->source) ? element->constant() : nullptr;
    if (!each) return nullptr;
    PyTuple_SET_ITEM(made.get(), i, Py_NewRef(each));
  }
  asked_ = true;
  constant_ = std::move(made);
  return constant_.get();
}

Variable* TupleVariable::sliceOf(Capture& capture, std::vector<Variable*> elements) {
  // A part of a torch.Size is one.
  return capture.make<TupleVariable>(std::move(elements),
                                     capture.world.isSizeType(type_) ? type_ : &PyTuple_Type);
}

Variable* TupleVariable::ownAttribute(Capture& capture, PyObject* name) {
  if (type_ == &PyTuple_Type) return nullptr;
  // Fields of a named tuple are descriptors that know their index.
  PyObject* const found = findTypeItem(type_, name);
  if (found && isStructSequence(type_) && Py_TYPE(found) == &PyMemberDescr_Type) {
    // Its members lie among the elements.
    const Py_ssize_t offset = reinterpret_cast<PyMemberDescrObject*>(found)->d_member->offset;
    const auto first = static_cast<Py_ssize_t>(offsetof(PyTupleObject, ob_item));
    const int64_t number = (offset - first) / static_cast<Py_ssize_t>(sizeof(PyObject*));
    return offset >= first && number < size() ? at(capture, number) : nullptr;
  }
  if (!found || std::string_view(Py_TYPE(found)->tp_name) != "_collections._tuplegetter") {
    return nullptr;
  }
  const Object parts = Object::checked(PyObject_CallMethod(found, "__reduce__", nullptr));
  PyObject* const index = PyTuple_GET_ITEM(PyTuple_GET_ITEM(parts.get(), 1), 0);
  const int64_t number = PyLong_AsLongLong(index);
  if (number < 0 || number >= size()) return nullptr;
  return at(capture, number);
}

Variable* TupleVariable::callMethod(Capture& capture, const std::string& name,
                                    const Arguments& given) {
  const size_t count = given.positional.size();
  if (!given.keywords.empty()) return nullptr;
  if (name == "index" && count == 1) {
    const int64_t found = find(capture, given.positional[0], 0, size());
    if (found < 0) capture.raise(PyExc_ValueError, "tuple.index(x): x not in tuple");
    return capture.constantLong(found);
  }
  if (name == "count" && count == 1) {
    int64_t found = 0;
    for (int64_t i = 0; i < size(); ++i) found += find(capture, given.positional[0], i, i + 1) >= 0;
    return capture.constantLong(found);
  }
  return nullptr;
}

int TupleVariable::build(Builder& builder) {
  std::vector<int> parts;
  if (type_ != &PyTuple_Type) {
    const int made = builder.make(StepKind::kTuple, builder.buildAll(elements_));
    if (isMadeByItself(type_)) {
      return builder.make(StepKind::kCall,
                          {builder.constant(reinterpret_cast<PyObject*>(type_)), made});
    }
    // Named tuples are made by tuple.__new__, as their `_make` does.

    const Object maker = Object::checked(
        PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyTuple_Type), "__new__"));
    return builder.make(StepKind::kCall,
                        {builder.constant(maker.get()),
                         builder.constant(reinterpret_cast<PyObject*>(type_)), made});
  }
  return builder.make(StepKind::kTuple, builder.buildAll(elements_));
}

// ---- lists ----

Variable* ListVariable::sliceOf(Capture& capture, std::vector<Variable*> elements) {
  return capture.make<ListVariable>(std::move(elements));
}

std::vector<Variable*>& ListVariable::changed(Capture& capture) {
  all(capture);
  capture.modify(this);
  return elements_;
}

void ListVariable::append(Capture& capture, Variable* element) {
  changed(capture).push_back(element);
}

void ListVariable::extend(Capture& capture, Variable* iterable) {
  if (capture.as<ListVariable>(iterable) == this) {
    const std::vector<Variable*> copy = all(capture);
    auto& elements = changed(capture);
    elements.insert(elements.end(), copy.begin(), copy.end());
    return;
  }
  Variable* const iterator = iterate_(capture, iterable);
  while (Variable* each = nextOf(capture, iterator)) append(capture, each);
}

void ListVariable::insert(Capture& capture, const Arguments& given) {
  const int64_t index = integerOf(capture, given.positional[0]);
  const int64_t place = std::clamp<int64_t>(index < 0 ? index + size() : index, 0, size());
  auto& elements = changed(capture);
  elements.insert(elements.begin() + place, given.positional[1]);
}

Variable* ListVariable::pop(Capture& capture, const Arguments& given) {
  if (size() == 0) capture.raise(PyExc_IndexError, "pop from empty list");
  int64_t index = size() - 1;
  if (!given.positional.empty()) index = indexOf(capture, given.positional[0], size());
  if (index < 0) capture.raise(PyExc_IndexError, "pop index out of range");
  auto& elements = changed(capture);
  Variable* const taken = elements[static_cast<size_t>(index)];
  elements.erase(elements.begin() + index);
  return taken;
}

void ListVariable::sort(Capture& capture, const Arguments& given) {
  Variable* key = nullptr;
  bool reverse = false;
  for (const auto& [name, value] : given.keywords) {
    if (PyUnicode_CompareWithASCIIString(name.get(), "key") == 0) {
      key = value;
    } else {
      reverse = truthOf(capture, value);
    }
  }
  if (!given.positional.empty())
    capture.raise(PyExc_TypeError, "sort() takes no positional arguments");
  std::vector<Variable*> sorted = sortVariables(capture, all(capture), key, reverse);
  changed(capture) = std::move(sorted);
}

Variable* ListVariable::callMethod(Capture& capture, const std::string& name,
                                   const Arguments& given) {
  const size_t count = given.positional.size();
  const auto none = [&] { return capture.constant(Py_None); };
  if (name == "sort") return sort(capture, given), none();
  if (!given.keywords.empty()) return nullptr;
  if (name == "append" && count == 1) return append(capture, given.positional[0]), none();
  if (name == "extend" && count == 1) return extend(capture, given.positional[0]), none();
  if (name == "insert" && count == 2) return insert(capture, given), none();
  if (name == "pop" && count <= 1) return pop(capture, given);
  if (name == "clear" && count == 0) return changed(capture).clear(), none();
  if (name == "copy" && count == 0) return capture.make<ListVariable>(all(capture));
  if (name == "reverse" && count == 0) {
    auto& elements = changed(capture);
    std::ranges::reverse(elements);
    return none();
  }
  if (name == "remove" && count == 1) {
    const int64_t found = find(capture, given.positional[0], 0, size());
    if (found < 0) capture.raise(PyExc_ValueError, "list.remove(x): x not in list");
    auto& elements = changed(capture);
    elements.erase(elements.begin() + found);
    return none();
  }
  if (name == "index" && count == 1) {
    const int64_t found = find(capture, given.positional[0], 0, size());
    if (found < 0) {
      const Object text = Object::own(PyObject_Repr(capture.objectFor(given.positional[0]).get()));
      if (!text) capture.raiseCurrent();
      capture.raise(PyExc_ValueError,
                    fmt::format("{} is not in list", PyUnicode_AsUTF8(text.get())));
    }
    return capture.constantLong(found);
  }
  if (name == "count" && count == 1) {
    int64_t found = 0;
    for (int64_t i = 0; i < size(); ++i) found += find(capture, given.positional[0], i, i + 1) >= 0;
    return capture.constantLong(found);
  }
  return nullptr;
}

void ListVariable::setItem(Capture& capture, Variable* key, Variable* value) {
  PyObject* const object = key->constant();
  if (object && PySlice_Check(object)) {
    Py_ssize_t start = 0, stop = 0, step = 0;
    const Py_ssize_t count = capture.concretely([&] {
      if (PySlice_Unpack(object, &start, &stop, &step) < 0) throw PythonError();
      return PySlice_AdjustIndices(size(), &start, &stop, step);
    });
    if (step != 1) breakGraph("a slice of a list with a step is assigned");
    std::vector<Variable*> given;
    if (value) {
      Variable* const iterator = iterate_(capture, value);
      while (Variable* each = nextOf(capture, iterator)) given.push_back(each);
    }
    auto& elements = changed(capture);
    elements.erase(elements.begin() + start, elements.begin() + start + count);
    elements.insert(elements.begin() + start, given.begin(), given.end());
    return;
  }
  if (object && !PyIndex_Check(object)) {
    capture.raise(PyExc_TypeError, fmt::format("list indices must be integers or slices, not {}",
                                               Py_TYPE(object)->tp_name));
  }
  const int64_t index = indexOf(capture, key, size());
  if (index < 0) {
    capture.raise(PyExc_IndexError, value ? "list assignment index out of range"
                                          : "list assignment index out of range");
  }
  auto& elements = changed(capture);
  if (value) {
    elements[static_cast<size_t>(index)] = value;
  } else {
    elements.erase(elements.begin() + index);
  }
}

int ListVariable::build(Builder& builder) {
  return builder.make(StepKind::kList, builder.buildAll(elements_));
}

void ListVariable::replay(Capture&, Builder& builder) {
  std::vector<int> arguments{builder.build(this)};
  for (const int each : builder.buildAll(elements_)) arguments.push_back(each);
  builder.effect(StepKind::kReplaceList, std::move(arguments));
}

}  // namespace wick::capture
