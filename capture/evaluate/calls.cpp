// Calls.
#include <fmt/format.h>

#include "capture/bytecode/instance.h"
#include "capture/evaluate/arrays.h"
#include "capture/evaluate/builtins.h"
#include "capture/evaluate/capture.h"
#include "capture/evaluate/checkpoints.h"
#include "capture/evaluate/own_derivatives.h"
#include "capture/evaluate/protocol.h"
#include "capture/values/builtin.h"
#include "capture/values/class.h"
#include "capture/values/constant.h"
#include "capture/values/number.h"
#include "capture/values/tensor.h"

namespace wick::capture {
namespace {

constexpr int kMaxDepth = 250;  // of inlined calls

class DepthScope {
 public:
  explicit DepthScope(Capture& capture) : capture_(capture) {
    if (++capture_.depth > kMaxDepth) {
      --capture_.depth;
      breakGraph("calls are nested too deeply");
    }
  }
  ~DepthScope() { --capture_.depth; }

 private:
  Capture& capture_;
};

// The arguments as objects for a C function.
struct Objects {
  std::vector<Object> kept;
  std::vector<PyObject*> all;
  Object names;

  // `open`: sizes stay open.
  Objects(Capture& capture, const Arguments& given, bool open) {
    const auto objectOf = [&](Variable* each) {
      return open ? capture.argumentFor(each) : capture.objectFor(each);
    };
    for (Variable* each : given.positional) add(objectOf(each));
    if (given.keywords.empty()) return;
    names = Object::checked(PyTuple_New(static_cast<Py_ssize_t>(given.keywords.size())));
    for (size_t i = 0; i < given.keywords.size(); ++i) {
      PyTuple_SET_ITEM(names.get(), static_cast<Py_ssize_t>(i),
                       Py_NewRef(given.keywords[i].first.get()));
      add(objectOf(given.keywords[i].second));
    }
  }
  size_t positional() const {
    return all.size() - (names ? static_cast<size_t>(PyTuple_GET_SIZE(names.get())) : 0);
  }

 private:
  void add(Object object) {
    all.push_back(object.get());
    kept.push_back(std::move(object));
  }
};

// Returns the product of a torch.Size, whose elements may be open.
Variable* productOf(Capture& capture, Variable* sizes) {
  constexpr int kMultiply = 5;  // of BINARY_OP
  Variable* product = capture.constantLong(1);
  for (Variable* each : elementsOf(capture, sizes)) {
    product = binary(capture, kMultiply, product, each);
  }
  return product;
}

}  // namespace

PyObject* builtinNamed(const char* name) {
  PyObject* const builtins = PyEval_GetBuiltins();
  PyObject* const found = builtins ? PyDict_GetItemString(builtins, name) : nullptr;
  if (!found) throw InternalError(__FILE__, __LINE__, fmt::format("no builtin '{}'", name));
  return found;
}

Variable* callVariable(Capture& capture, Variable* function, const Arguments& given) {
  const DepthScope scope(capture);
  capture.step();
  return capture.use(function)->call(capture, given);
}

Object operatorFunction(const char* name) {
  static const Object& kModule = forever(Object::checked(PyImport_ImportModule("operator")));
  return Object::checked(PyObject_GetAttrString(kModule.get(), name));
}

Variable* elementOf(Capture& capture, Variable* variable) {
  auto* const tensor = capture.as<TensorVariable>(variable);
  if (!tensor) return nullptr;
  if (const Object number = capture.recording->constantOf(tensor->fake())) {
    return capture.constant(number.get());
  }
  const auto element = capture.recording->elementOf(tensor->fake());
  return element ? capture.sizeVariable(*element) : nullptr;
}

Variable* callWorld(Capture& capture, PyObject* function, const Arguments& given) {
  const Callee kind = capture.world.calleeOf(function);
  if (kind != Callee::kBreak) capture.recording->enter(function);
  const bool derivative = capture.part == Capture::Part::kDerivative;
  if (capture.part >= Capture::Part::kReentrant &&
      (kind == Callee::kGradMode || kind == Callee::kSetGradMode ||
       (derivative && kind == Callee::kAutocast))) {
    breakGraph("a derivative or a checkpoint that asks for the gradient mode, or changes it");
  }
  switch (kind) {
    case Callee::kCheckpoint:
      return callCheckpoint(capture, given, false);
    case Callee::kApply:
      return applyFunction(capture, given);
    case Callee::kOperator: {
      const Objects objects(capture, given, true);
      return capture.recorded(function, objects.all, objects.names.get());
    }
    case Callee::kPure: {
      const Objects objects(capture, given, false);
      return capture.concretely([&] {
        return capture.result(Object::checked(PyObject_Vectorcall(
            function, objects.all.data(), objects.positional(), objects.names.get())));
      });
    }
    case Callee::kGradMode:
      return capture.constantBool(capture.recording->gradMode());
    case Callee::kItem:
      if (given.positional.size() == 1 && given.keywords.empty()) {
        if (Variable* found = numberIn(capture, given.positional[0])) return found;
      }
      break;
    case Callee::kSetGradMode: {
      if (given.positional.size() != 1) break;
      capture.recording->setGradMode(truthOf(capture, given.positional[0]));
      return capture.constant(Py_None);
    }
    case Callee::kAutocast: {
      const Objects objects(capture, given, false);
      if (objects.names) break;
      return capture.result(capture.recording->callAutocast(function, objects.all));
    }
    default:
      break;
  }
  const Object shown = Object::own(PyObject_Repr(function));
  if (!shown) PyErr_Clear();
  breakGraph(fmt::format("a call of {}", shown ? PyUnicode_AsUTF8(shown.get()) : "a function"));
}

Variable* callBound(Capture& capture, Variable* self, PyObject* name, PyObject* method,
                    const Arguments& given) {
  Arguments all{{self}, given.keywords};
  all.positional.insert(all.positional.end(), given.positional.begin(), given.positional.end());
  if (Variable* found = callArrayFunction(capture, method, all)) return found;
  if (Variable* found = callBuiltin(capture, method, all)) return found;
  if (capture.world.calleeOf(method) != Callee::kUnknown) return callWorld(capture, method, all);
  for (Variable* each : given.positional) capture.use(each);
  for (const auto& [key, value] : given.keywords) capture.use(value);
  capture.use(self);
  const char* const text = PyUnicode_AsUTF8(name);
  if (!text) throw PythonError();
  if (Variable* found = self->callMethod(capture, text, given)) return found;
  // Special methods by their names.
  const std::string_view special = text;
  if (given.keywords.empty()) {
    if (special == "__len__" && given.positional.empty()) {
      return capture.constantLong(lengthOf(capture, self));
    }
    if (special == "__iter__" && given.positional.empty()) return iterate_(capture, self);
    if (special == "__getitem__" && given.positional.size() == 1) {
      return getItem(capture, self, given.positional[0]);
    }
    if (special == "__setitem__" && given.positional.size() == 2) {
      setItem(capture, self, given.positional[0], given.positional[1]);
      return capture.constant(Py_None);
    }
    if (special == "__delitem__" && given.positional.size() == 1) {
      setItem(capture, self, given.positional[0], nullptr);
      return capture.constant(Py_None);
    }
    if (special == "__contains__" && given.positional.size() == 1) {
      return capture.constantBool(contains(capture, self, given.positional[0]));
    }
    if (special == "numel" && given.positional.empty() && capture.world.isSizeType(self->type())) {
      return productOf(capture, self);
    }
    if (special == "__eq__" && given.positional.size() == 1) {
      return compare(capture, Py_EQ, self, given.positional[0]);
    }
    if (special == "__next__" && given.positional.empty()) {
      if (Variable* next = nextOf(capture, self)) return next;
      capture.raiseWith(PyExc_StopIteration, {});
    }
  }
  breakGraph(fmt::format("{}.{}() with these arguments", self->type()->tp_name, text));
}

Variable* callMethod(Capture& capture, Variable* variable, const char* name,
                     std::vector<Variable*> given) {
  const Object text = Object::checked(PyUnicode_InternFromString(name));
  return callVariable(capture, getAttribute(capture, variable, text.get()), {std::move(given), {}});
}

}  // namespace wick::capture
