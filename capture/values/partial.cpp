#include "capture/values/partial.h"

#include <algorithm>

#include "capture/effects/builder.h"
#include "capture/evaluate/capture.h"
#include "capture/evaluate/protocol.h"
#include "capture/values/dict.h"
#include "capture/values/sequence.h"

namespace wick::capture {

PyTypeObject* PartialVariable::partialType() {
  static PyObject* const found = [] {
    const Object module = Object::checked(PyImport_ImportModule("functools"));
    return Object::checked(PyObject_GetAttrString(module.get(), "partial")).leak();
  }();
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
  breakGraph("an attribute of a partial");
}

Variable* PartialVariable::call(Capture& capture, const Arguments& given) {
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
  return callVariable(capture, function_, all);
}

int PartialVariable::build(Builder& builder) {
  std::vector<int> arguments{builder.constant(reinterpret_cast<PyObject*>(type())),
                             builder.build(function_)};
  for (const int each : builder.buildAll(given_.positional)) arguments.push_back(each);
  Object names;
  if (!given_.keywords.empty()) {
    names = Object::checked(PyTuple_New(static_cast<Py_ssize_t>(given_.keywords.size())));
    for (size_t i = 0; i < given_.keywords.size(); ++i) {
      PyTuple_SET_ITEM(names.get(), static_cast<Py_ssize_t>(i),
                       Py_NewRef(given_.keywords[i].first.get()));
      arguments.push_back(builder.build(given_.keywords[i].second));
    }
  }
  return builder.make(StepKind::kCall, std::move(arguments), std::move(names));
}

}  // namespace wick::capture
