#include "capture/values/iterators.h"

#include <fmt/format.h>

#include "capture/effects/builder.h"
#include "capture/evaluate/capture.h"
#include "capture/evaluate/protocol.h"
#include "capture/values/constant.h"
#include "capture/values/dict.h"
#include "capture/values/sequence.h"

namespace wick::capture {
namespace {

// The class of an iterator over an empty object of a class.
PyTypeObject* iteratorType(const Object& object, const char* method = nullptr) {
  const Object view =
      method ? Object::checked(PyObject_CallMethod(object.get(), method, nullptr)) : object;
  return Py_TYPE(Object::checked(PyObject_GetIter(view.get())).get());
}

const char* methodOf(DictIterator::What what) {
  return what == DictIterator::What::kKeys     ? "keys"
         : what == DictIterator::What::kValues ? "values"
                                               : "items";
}

Variable* elementOf(Capture& capture, DictIterator::What what,
                    const std::pair<Variable*, Variable*>& item) {
  if (what == DictIterator::What::kKeys) return item.first;
  if (what == DictIterator::What::kValues) return item.second;
  return capture.make<TupleVariable>(std::vector<Variable*>{item.first, item.second},
                                     &PyTuple_Type);
}

// Returns copy.copy.
Object copyFunction() {
  const Object module = Object::checked(PyImport_ImportModule("copy"));
  return Object::checked(PyObject_GetAttrString(module.get(), "copy"));
}

}  // namespace

int IteratorVariable::build(Builder&) {
  breakGraph(fmt::format("{} is kept beyond the graph", describe(*this)));
}

// ---- sequences ----

SequenceIterator::SequenceIterator(SequenceVariable* sequence, bool reversed)
    : sequence_(sequence), reversed_(reversed), at_(reversed ? sequence->size() - 1 : 0) {}

PyTypeObject* SequenceIterator::type() const {
  if (reversed_) return &PyListRevIter_Type;
  return PyType_IsSubtype(sequence_->type(), &PyList_Type) ? &PyListIter_Type : &PyTupleIter_Type;
}

Variable* SequenceIterator::next(Capture& capture) {
  capture.use(sequence_);
  if (ended_ || at_ < 0 || at_ >= sequence_->size()) {
    ended_ = true;
    return nullptr;
  }
  Variable* const found = sequence_->at(capture, at_);
  at_ += reversed_ ? -1 : 1;
  return found;
}

int SequenceIterator::build(Builder& builder) {
  if (ended_ || reversed_) return IteratorVariable::build(builder);
  const int iterator = builder.make(
      StepKind::kCall, {builder.constant(builtinNamed("iter")), builder.build(sequence_)});
  if (at_ == 0) return iterator;
  const Object name = Object::checked(PyUnicode_InternFromString("__setstate__"));
  const int method = builder.make(StepKind::kAttribute, {iterator}, name);
  const Object number = Object::checked(PyLong_FromLongLong(at_));
  builder.make(StepKind::kCall, {method, builder.constant(number.get())});
  return iterator;
}

// ---- constants ----

IteratorVariable* SequenceIterator::copy(Capture& capture) const {
  auto* const made = capture.make<SequenceIterator>(sequence_, reversed_);
  made->ended_ = ended_;
  made->at_ = at_;
  return made;
}

Variable* ConstantIterator::next(Capture& capture) {
  return capture.concretely([&]() -> Variable* {
    Object found = Object::own(PyIter_Next(iterator_.get()));
    if (!found) {
      if (PyErr_Occurred()) throw PythonError();
      return nullptr;
    }
    return wrapComputed(capture, found);
  });
}

IteratorVariable* ConstantIterator::copy(Capture& capture) const {
  Object own = Object::checked(PyObject_CallOneArg(copyFunction().get(), iterator_.get()));
  return capture.make<ConstantIterator>(std::move(own));
}

int ConstantIterator::build(Builder& builder) {
  // A copy of the iterator as it stands, for each call.
  const Object function = copyFunction();
  const Object own = Object::checked(PyObject_CallOneArg(function.get(), iterator_.get()));
  return builder.make(StepKind::kCall,
                      {builder.constant(function.get()), builder.constant(own.get())});
}

// ---- dicts ----

DictIterator::DictIterator(Capture& capture, DictVariable* dict, What what)
    : dict_(dict), what_(what), items_(dict->items(capture)), changes_(dict->numChanges()) {}

PyTypeObject* DictIterator::type() const {
  const Object empty = Object::checked(dict_->isOrdered() ? PyODict_New() : PyDict_New());
  return iteratorType(empty, methodOf(what_));
}

IteratorVariable* DictIterator::copy(Capture& capture) const {
  auto* const made = capture.make<DictIterator>(capture, dict_, what_);
  made->items_ = items_;
  made->changes_ = changes_;
  made->ended_ = ended_;
  made->at_ = at_;
  return made;
}

Variable* DictIterator::next(Capture& capture) {
  if (ended_) return nullptr;
  if (dict_->numChanges() != changes_) {
    if (dict_->isOrdered()) {
      capture.raise(PyExc_RuntimeError, "OrderedDict mutated during iteration");
    }
    if (dict_->DictVariable::length(capture) != static_cast<int64_t>(items_.size())) {
      capture.raise(PyExc_RuntimeError, "dictionary changed size during iteration");
    }
    breakGraph("keys are replaced while a dict is iterated over");
  }
  if (at_ >= items_.size()) {
    ended_ = true;
    return nullptr;
  }
  auto item = items_[at_++];
  if (Variable* now = dict_->find(capture, dict_->keyOf(capture, item.first).get())) {
    item.second = now;
  }
  return elementOf(capture, what_, item);
}

Variable* ItemIterator::next(Capture& capture) {
  if (ended_) return nullptr;
  try {
    return getItem(capture, container_, capture.constantLong(at_++));
  } catch (const Raised& raised) {
    for (PyObject* type : {PyExc_IndexError, PyExc_StopIteration}) {
      if (!PyType_IsSubtype(raised.exception->type(), reinterpret_cast<PyTypeObject*>(type)))
        continue;
      ended_ = true;
      return nullptr;
    }
    throw;
  }
}

PyTypeObject* DictView::type() const {
  return what_ == DictIterator::What::kKeys     ? &PyDictKeys_Type
         : what_ == DictIterator::What::kValues ? &PyDictValues_Type
                                                : &PyDictItems_Type;
}

Variable* DictView::iterate(Capture& capture) {
  return capture.make<DictIterator>(capture, dict_, what_);
}

int64_t DictView::length(Capture& capture) {
  return dict_->DictVariable::length(capture);
}

bool DictView::contains(Capture& capture, Variable* element) {
  if (what_ == DictIterator::What::kKeys) return dict_->DictVariable::contains(capture, element);
  Variable* const iterator = iterate(capture);
  while (Variable* each = nextOf(capture, iterator)) {
    if (isEqual(capture, each, element)) return true;
  }
  return false;
}

int DictView::build(Builder& builder) {
  const Object name = Object::checked(PyUnicode_InternFromString(methodOf(what_)));
  const int method = builder.make(StepKind::kAttribute, {builder.build(dict_)}, name);
  return builder.make(StepKind::kCall, {method});
}

// ---- combined ----

PyTypeObject* CombinedIterator::type() const {
  switch (kind_) {
    case Kind::kZip:
      return &PyZip_Type;
    case Kind::kEnumerate:
      return &PyEnum_Type;
    case Kind::kMap:
      return &PyMap_Type;
    case Kind::kFilter:
      break;
  }
  return &PyFilter_Type;
}

void CombinedIterator::checkLengths(Capture& capture, size_t ended) {
  if (!strict_) return;
  const auto others = [&](size_t count) {
    return count == 1 ? std::string("argument 1") : fmt::format("arguments 1-{}", count);
  };
  if (ended > 0) {
    capture.raise(PyExc_ValueError,
                  fmt::format("zip() argument {} is shorter than {}", ended + 1, others(ended)));
  }
  for (size_t i = 1; i < iterators_.size(); ++i) {
    if (!nextOf(capture, iterators_[i])) continue;
    capture.raise(PyExc_ValueError,
                  fmt::format("zip() argument {} is longer than {}", i + 1, others(i)));
  }
}

Variable* CombinedIterator::next(Capture& capture) {
  for (;;) {
    capture.step();
    std::vector<Variable*> elements;
    for (size_t i = 0; i < iterators_.size(); ++i) {
      Variable* const each = nextOf(capture, iterators_[i]);
      if (!each) {
        if (kind_ == Kind::kZip) checkLengths(capture, i);
        return nullptr;
      }
      elements.push_back(each);
    }
    if (elements.empty()) return nullptr;
    switch (kind_) {
      case Kind::kEnumerate:
        elements.insert(elements.begin(), capture.constantLong(count++));
        [[fallthrough]];
      case Kind::kZip:
        return capture.make<TupleVariable>(std::move(elements), &PyTuple_Type);
      case Kind::kMap:
        return callVariable(capture, function_, {std::move(elements), {}});
      default: {
        Variable* const kept = elements[0];
        Variable* const wanted = capture.use(function_)->constant() == Py_None
                                     ? kept
                                     : callVariable(capture, function_, {{kept}, {}});
        if (truthOf(capture, wanted)) return kept;
      }
    }
  }
}

}  // namespace wick::capture
