#include "capture/values/partial.h"

#include <algorithm>

#include "capture/effects/builder.h"
#include "capture/evaluate/capture.h"
#include "capture/evaluate/protocol.h"
#include "capture/values/dict.h"
#include "capture/values/sequence.h"

namespace wick::capture {

PyTypeObject* PartialVariable::partialType() {
  static PyObject* const found = libraryObject("functools", "partial");
  return reinterpret_cast<PyTypeObject*>(found);
}

void PartialVariable::guard(Capture& capture) {
  if (!object) return;
  capture.guardType(source, type());
  const auto part = [&](const char* text) {
    const Object name = Object::checked(PyUnicode_InternFromString(text));
    const Object found = Object::checked(PyObject_GenericGetAttr(object.get(), name.get()));
    return capture.readChild(this, Access::kMember, 0, name.get(), found.get());
  };
  function_ = part("func");
  given_.positional = elementsOf(capture, part("args"));
  auto* const keywords = capture.as<DictVariable>(part("keywords"));
  if (!keywords) breakGraph("a partial without keywords");
  for (const auto& [key, value] : keywords->items(capture)) {
    PyObject* const name = capture.use(key)->constant();
    if (!name || !PyUnicode_Check(name)) breakGraph("a keyword that is no text");
    given_.keywords.emplace_back(Object::share(name), value);
  }
}

Variable* PartialVariable::ownAttribute(Capture& capture, PyObject* name) {
  if (PyUnicode_CompareWithASCIIString(name, "func") == 0) return function_;
  if (PyUnicode_CompareWithASCIIString(name, "args") == 0) {
    return capture.make<TupleVariable>(given_.positional, &PyTuple_Type);
  }
  for (const auto& [own, value] : attributes_) {
    if (PyUnicode_Compare(own.get(), name) == 0) return value;
  }
  breakGraph("an attribute of a partial");
}

void PartialVariable::setAttribute(Capture& capture, PyObject* name, Variable* value) {
  if (object || !value || is(name, "func") || is(name, "args") || is(name, "keywords")) {
    return Variable::setAttribute(capture, name, value);
  }
  std::erase_if(attributes_,
                [&](const auto& each) { return PyUnicode_Compare(each.first.get(), name) == 0; });
  attributes_.emplace_back(Object::share(name), value);
}

Variable* PartialVariable::extended(Capture& capture, const Arguments& more) const {
  if (object || !attributes_.empty()) return nullptr;
  return capture.make<PartialVariable>(function_, joined(more));
}

Variable* PartialVariable::call(Capture& capture, const Arguments& given) {
  return callVariable(capture, function_, joined(given));
}

Arguments PartialVariable::joined(const Arguments& given) const {
  Arguments all = given_;
  all.positional.insert(all.positional.end(), given.positional.begin(), given.positional.end());
  for (const auto& [name, value] : given.keywords) {
    const auto same = std::ranges::find_if(all.keywords, [&](const auto& each) {
      return PyUnicode_Compare(each.first.get(), name.get()) == 0;
    });
    if (same != all.keywords.end()) {
      same->second = value;
    } else {
      all.keywords.emplace_back(name, value);
    }
  }
  return all;
}

int PartialVariable::build(Builder& builder) {
  Arguments all{{function_}, given_.keywords};
  all.positional.insert(all.positional.end(), given_.positional.begin(), given_.positional.end());
  const int made = builder.buildCall(builder.constant(reinterpret_cast<PyObject*>(type())), all);
  builder.remember(this, made);
  for (const auto& [name, value] : attributes_) {
    builder.effect(StepKind::kSetInstanceItem, {made, builder.build(value)}, name);
  }
  return made;
}

}  // namespace wick::capture
