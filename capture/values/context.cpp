#include "capture/values/context.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "capture/bytecode/instance.h"
#include "capture/evaluate/capture.h"
#include "capture/evaluate/protocol.h"
#include "capture/values/builtin.h"
#include "capture/values/dict.h"
#include "capture/values/sequence.h"

namespace wick::capture {

Variable* ContextVariable::ownAttribute(Capture& capture, PyObject* name) {
  const std::string_view text = PyUnicode_AsUTF8(name);
  if (text == "needs_input_grad") {
    std::vector<Variable*> all;
    for (const bool each : needs_) all.push_back(capture.constantBool(each));
    return capture.make<TupleVariable>(std::move(all), &PyTuple_Type);
  }
  if (text == "saved_tensors" && in_backward_) {
    return capture.make<TupleVariable>(saved, &PyTuple_Type);
  }
  static constexpr std::string_view kMethods[] = {"save_for_backward", "mark_non_differentiable",
                                                  "set_materialize_grads"};
  if (std::ranges::find(kMethods, text) != std::end(kMethods)) {
    PyObject* const method = findTypeItem(type(), name);
    if (!method) return nullptr;
    return capture.make<BoundVariable>(this, Object::share(name), Object::share(method));
  }
  PyObject* const of_class = findTypeItem(type(), name);
  if (of_class && !is(name, "__class__") && !is(name, "__dict__")) {
    breakGraph(fmt::format("'{}' of the context of a function with a derivative of its own", text));
  }
  if (is(name, "__class__")) return nullptr;
  // The class may tell nobody that its objects have attributes.
  if (is(name, "__dict__")) return attributes(capture);
  return attributes(capture)->find(capture, name);
}

void ContextVariable::setAttribute(Capture& capture, PyObject* name, Variable* value) {
  if (findTypeItem(type(), name)) {
    breakGraph(fmt::format("'{}' of the context of a function with a derivative of its own is set",
                           PyUnicode_AsUTF8(name)));
  }
  if (value) return attributes(capture)->set(capture, name, nullptr, value);
  if (!attributes(capture)->erase(capture, name)) {
    capture.raise(PyExc_AttributeError, PyUnicode_AsUTF8(name));
  }
}

Variable* ContextVariable::callMethod(Capture& capture, const std::string& name,
                                      const Arguments& given) {
  if (!given.keywords.empty()) return nullptr;
  if (in_backward_) breakGraph("a derivative changes its context");
  if (name == "save_for_backward") {
    saved = given.positional;
  } else if (name == "mark_non_differentiable") {
    without_gradient = given.positional;
  } else if (name == "set_materialize_grads" && given.positional.size() == 1) {
    materializes = truthOf(capture, given.positional[0]);
  } else {
    return nullptr;
  }
  return capture.constant(Py_None);
}

int ContextVariable::build(Builder&) {
  breakGraph("the context of a function with a derivative of its own is kept");
}

}  // namespace wick::capture
