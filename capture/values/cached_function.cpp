#include "capture/values/cached_function.h"

#include <fmt/format.h>

#include "capture/bytecode/cached_call.h"
#include "capture/bytecode/instance.h"
#include "capture/effects/builder.h"
#include "capture/evaluate/capture.h"
#include "capture/evaluate/protocol.h"
#include "capture/values/constant.h"
#include "capture/values/sequence.h"

namespace wick::capture {
namespace {

// Returns the object that stands for an argument in keys.
Object argumentOf(Capture& capture, Variable* variable) {
  capture.use(variable);
  if (PyObject* constant = variable->constant()) {
    if (PyObject_Hash(constant) == -1) capture.raiseCurrent();
    if (holdsNan(constant)) breakGraph("a NaN is an argument of a function with lru_cache");
    if (isConstant(constant)) return Object::share(constant);
  }
  if (dynamic_cast<TupleVariable*>(variable)) {
    Object whole = capture.elementsFor(variable);
    if (isConstant(whole.get())) return whole;
  }
  const hashfunc hash = variable->type()->tp_hash;
  if (!variable->object || hash != PyBaseObject_Type.tp_hash ||
      capture.world.isTensorType(variable->type())) {
    breakGraph(fmt::format("{} is an argument of a function with lru_cache", describe(*variable)));
  }
  if (variable->source) {
    capture.guards.add(variable->source, {Check::Kind::kIdentity, variable->object, 0, {}});
  }
  return variable->object;
}

}  // namespace

void CachedFunctionVariable::guard(Capture& capture) {
  if (source) capture.guards.add(source, {Check::Kind::kIdentity, object, 0, {}});
}

Source* CachedFunctionVariable::place(Capture& capture) const {
  return source ? source : capture.guards.root(Access::kPinned, 0, object.get());
}

Object CachedFunctionVariable::keyOf(Capture& capture, const Arguments& given) const {
  std::vector<Variable*> all = given.positional;
  for (const auto& [name, value] : given.keywords) all.push_back(value);
  const auto tupleOf = [](size_t count, auto&& element) {
    Object made = Object::checked(PyTuple_New(static_cast<Py_ssize_t>(count)));
    for (size_t i = 0; i < count; ++i) {
      PyTuple_SET_ITEM(made.get(), static_cast<Py_ssize_t>(i), element(i).leak());
    }
    return made;
  };
  const Object arguments =
      tupleOf(all.size(), [&](size_t i) { return argumentOf(capture, all[i]); });
  const Object types = tupleOf(all.size(), [&](size_t i) {
    return Object::share(reinterpret_cast<PyObject*>(all[i]->type()));
  });
  const Object names =
      given.keywords.empty()
          ? Object()
          : tupleOf(given.keywords.size(), [&](size_t i) { return given.keywords[i].first; });
  return keyOfCall(object.get(), arguments.get(), names.get(), types.get());
}

Variable* CachedFunctionVariable::known(PyObject* key) const {
  PyObject* const number = results_ ? PyDict_GetItemWithError(results_.get(), key) : nullptr;
  if (!number && PyErr_Occurred()) throw PythonError();
  return number ? values_[PyLong_AsSize_t(number)] : nullptr;
}

void CachedFunctionVariable::note(Capture& capture, PyObject* key, Variable* result) {
  if (!results_) results_ = Object::checked(PyDict_New());
  const Object number = Object::checked(PyLong_FromSize_t(values_.size()));
  if (PyDict_SetItem(results_.get(), key, number.get()) < 0) throw PythonError();
  values_.push_back(result);
  capture.modify(this);
  // As long as the results of this call have room, those from before give way first.
  const Py_ssize_t most = cachedCallOf(object.get()).most;
  if (most >= 0 && PyDict_GET_SIZE(results_.get()) > most) {
    breakGraph("a function with lru_cache keeps fewer results than it is asked for");
  }
}

// Returns the result that was kept before the call; null if there is none.
Variable* CachedFunctionVariable::keptBefore(Capture& capture, PyObject* key) {
  if (cleared_) return nullptr;
  PyObject* const found = keptResult(object.get(), key);
  if (!found) {
    capture.guards.add(place(capture), {Check::Kind::kLacksKept, Object::share(key), 0, {}});
    return nullptr;
  }
  if (keeps_new_ && cachedCallOf(object.get()).most >= 0) {
    breakGraph("a function with lru_cache is asked for a result that may have given way");
  }
  Source* const at = capture.guards.child(place(capture), Access::kKept, 0, key);
  capture.guards.add(at, {Check::Kind::kPresent, {}, 0, {}});
  return capture.read(at, found);
}

Variable* CachedFunctionVariable::evaluate(Capture& capture, PyObject* key,
                                           const Arguments& given) {
  Variable* result = nullptr;
  try {
    result = callVariable(capture, capture.pinned(cachedCallOf(object.get()).function), given);
  } catch (const Raised&) {
    breakGraph("a function with lru_cache raises an exception");
  }
  if (known(key)) breakGraph("a function with lru_cache calls itself with the same arguments");
  return result;
}

Variable* CachedFunctionVariable::call(Capture& capture, const Arguments& given) {
  if (cachedCallOf(object.get()).most == 0) breakGraph("a function with an lru_cache of size 0");
  capture.changeInSide(*this);
  const Object key = keyOf(capture, given);
  Variable* found = known(key.get());
  if (!found && (found = keptBefore(capture, key.get()))) note(capture, key.get(), found);
  if (found) {
    uses_.push_back({Use::Kind::kFinds, given, found});
    return found;
  }
  found = evaluate(capture, key.get(), given);
  keeps_new_ = true;
  note(capture, key.get(), found);
  uses_.push_back({Use::Kind::kKeeps, given, found});
  return found;
}

Variable* CachedFunctionVariable::callMethod(Capture& capture, const std::string& name,
                                             const Arguments& given) {
  if (name == "__get__" && given.keywords.empty() && !given.positional.empty()) {
    if (given.positional[0]->constant() == Py_None) return this;
    return bindAttribute(capture, object.get(), given.positional[0], given.positional[0]->type());
  }
  if (name != "cache_clear" || !given.empty()) return nullptr;
  capture.modify(this);
  results_ = {};
  cleared_ = true;
  uses_.push_back({Use::Kind::kClears, {}, nullptr});
  return capture.constant(Py_None);
}

int CachedFunctionVariable::build(Builder& builder) {
  return builder.constant(object.get());
}

void CachedFunctionVariable::replay(Capture&, Builder& builder) {
  const int target = builder.build(this);
  for (const Use& use : uses_) {
    if (use.kind == Use::Kind::kFinds) {
      builder.buildCall(target, use.given);
      continue;
    }
    if (use.kind == Use::Kind::kKeeps) {
      builder.buildKeep(target, builder.build(use.result), use.given);
      continue;
    }
    static PyObject* const kName = PyUnicode_InternFromString("cache_clear");
    builder.make(StepKind::kCall, {builder.constant(findTypeItem(type(), kName)), target});
  }
}

}  // namespace wick::capture
