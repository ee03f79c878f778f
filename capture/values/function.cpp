#include "capture/values/function.h"

#include <fmt/format.h>

#include <algorithm>

#include "capture/bytecode/instance.h"
#include "capture/effects/builder.h"
#include "capture/evaluate/arrays.h"
#include "capture/evaluate/capture.h"
#include "capture/evaluate/dispatch.h"
#include "capture/evaluate/inline.h"
#include "capture/evaluate/opaque.h"
#include "capture/evaluate/protocol.h"
#include "capture/values/dict.h"
#include "capture/values/sequence.h"

namespace wick::capture {
namespace {

Object typeObject(PyTypeObject* type) {
  return Object::share(reinterpret_cast<PyObject*>(type));
}

}  // namespace

// ---- cells ----

void CellVariable::guard(Capture& capture) {
  if (!source) return;
  capture.guards.add(source, {Check::Kind::kType, typeObject(&PyCell_Type), 0, {}});
}

Variable* CellVariable::contents(Capture& capture) {
  capture.use(this);
  if (!read_) {
    PyObject* const inside = PyCell_GET(object.get());
    if (!inside) breakGraph("a variable of an outer function is not set");
    contents_ = capture.readChild(this, Access::kCellContents, 0, nullptr, inside);
    read_ = true;
  }
  return contents_;
}

void CellVariable::set(Capture& capture, Variable* value) {
  capture.use(this);
  read_ = true;
  contents_ = value;
  capture.modify(this);
}

Variable* CellVariable::ownAttribute(Capture& capture, PyObject* name) {
  if (!is(name, "cell_contents")) return nullptr;
  Variable* const found = contents(capture);
  if (!found) capture.raise(PyExc_ValueError, "Cell is empty");
  return found;
}

int CellVariable::build(Builder& builder) {
  const int made = builder.make(StepKind::kCell, {});
  builder.remember(this, made);
  if (contents_) builder.effect(StepKind::kSetCell, {made, builder.build(contents_)});
  return made;
}

void CellVariable::replay(Capture&, Builder& builder) {
  std::vector<int> arguments{builder.build(this)};
  if (contents_) arguments.push_back(builder.build(contents_));
  builder.effect(StepKind::kSetCell, std::move(arguments));
}

// ---- functions ----

FunctionVariable::FunctionVariable(Object existing)
    : code_(Object::share(PyFunction_GET_CODE(existing.get()))) {
  object = std::move(existing);
}

FunctionVariable::FunctionVariable(Object code, DictVariable* globals, Object qualified_name)
    : code_(std::move(code)), globals_(globals), qualified_name_(std::move(qualified_name)) {}

void FunctionVariable::guard(Capture& capture) {
  if (source) capture.guards.add(source, {Check::Kind::kCode, code_, 0, {}});
}

DictVariable* FunctionVariable::globals(Capture& capture) {
  if (!globals_) {
    PyObject* const dict = PyFunction_GET_GLOBALS(object.get());
    Variable* const found =
        source ? capture.readChild(this, Access::kFunctionGlobals, 0, nullptr, dict)
               : capture.pinned(dict);
    globals_ = capture.as<DictVariable>(found);
    if (!globals_) breakGraph("the globals of a function are no dict");
  }
  return globals_;
}

DictVariable* FunctionVariable::builtins(Capture& capture) {
  PyObject* const dict = object ? reinterpret_cast<PyFunctionObject*>(object.get())->func_builtins
                                : capture.roots.builtins;
  auto* const found = capture.as<DictVariable>(capture.pinned(dict));
  if (!found) breakGraph("the builtins of a function are no dict");
  return found;
}

Variable* FunctionVariable::defaultOf(Capture& capture, int index, int count) {
  if (!object) {
    auto* const all = defaults ? dynamic_cast<TupleVariable*>(defaults) : nullptr;
    if (!all) return nullptr;
    const int64_t place = index - (count - all->size());
    return place < 0 ? nullptr : all->at(capture, place);
  }
  PyObject* const all = PyFunction_GET_DEFAULTS(object.get());
  if (source) {
    capture.guards.add(source, all ? Check{Check::Kind::kNumDefaults, {}, PyTuple_GET_SIZE(all), {}}
                                   : Check{Check::Kind::kNoDefaults, {}, 0, {}});
  }
  const Py_ssize_t place = all ? index - (count - PyTuple_GET_SIZE(all)) : -1;
  if (place < 0) return nullptr;
  return capture.readChild(this, Access::kFunctionDefault, place, nullptr,
                           PyTuple_GET_ITEM(all, place));
}

Variable* FunctionVariable::keywordDefaultOf(Capture& capture, PyObject* name) {
  if (!object) {
    auto* const all = keyword_defaults ? dynamic_cast<DictVariable*>(keyword_defaults) : nullptr;
    return all ? all->find(capture, name) : nullptr;
  }
  PyObject* const all = PyFunction_GET_KW_DEFAULTS(object.get());
  PyObject* const found = all ? PyDict_GetItemWithError(all, name) : nullptr;
  if (!found) {
    if (source) {
      capture.guards.add(source, {Check::Kind::kLacksDefault, Object::share(name), 0, {}});
    }
    return nullptr;
  }
  return capture.readChild(this, Access::kFunctionKeywordDefault, 0, name, found);
}

int FunctionVariable::numDefaults(Capture& capture) {
  if (!object) {
    auto* const all = defaults ? dynamic_cast<TupleVariable*>(defaults) : nullptr;
    return all ? static_cast<int>(all->size()) : 0;
  }
  defaultOf(capture, -1, 0);  // guards the number
  PyObject* const all = PyFunction_GET_DEFAULTS(object.get());
  return all ? static_cast<int>(PyTuple_GET_SIZE(all)) : 0;
}

std::string FunctionVariable::nameForErrors(Capture& capture) {
  const Object text = Object::checked(PyUnicode_InternFromString("__qualname__"));
  PyObject* const name = capture.use(getAttribute(capture, this, text.get()))->constant();
  const char* const utf8 = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : nullptr;
  if (!utf8) breakGraph("an error of a function without a name");
  return utf8;
}

int FunctionVariable::numCells() const {
  if (!object) {
    const auto* const all = closure ? dynamic_cast<TupleVariable*>(closure) : nullptr;
    return all ? static_cast<int>(all->size()) : 0;
  }
  PyObject* const all = PyFunction_GET_CLOSURE(object.get());
  return all ? static_cast<int>(PyTuple_GET_SIZE(all)) : 0;
}

Variable* FunctionVariable::closureCell(Capture& capture, int index) {
  if (!object) return dynamic_cast<TupleVariable*>(closure)->at(capture, index);
  PyObject* const all = PyFunction_GET_CLOSURE(object.get());
  return capture.readChild(this, Access::kFunctionClosure, index, nullptr,
                           PyTuple_GET_ITEM(all, index));
}

DictVariable* FunctionVariable::attributes(Capture& capture) {
  if (!attributes_) {
    attributes_ =
        object ? capture.attributesOf(this) : capture.make<DictVariable>(&PyDict_Type, this);
  }
  return attributes_;
}

Variable* FunctionVariable::ownAttribute(Capture& capture, PyObject* name) {
  if (Variable* found = attributes(capture)->find(capture, name)) return found;
  for (const auto& [own, value] : parts_) {
    if (PyUnicode_Compare(own.get(), name) == 0) return value;
  }
  if (is(name, "__dict__")) return attributes(capture);
  if (is(name, "__globals__")) return globals(capture);
  if (is(name, "__code__")) return capture.pinned(code_.get());
  if (object && (is(name, "__name__") || is(name, "__qualname__") || is(name, "__doc__") ||
                 is(name, "__module__"))) {
    // Names may be changed without a trace: the function must be this one.
    if (source) capture.guards.add(source, {Check::Kind::kIdentity, object, 0, {}});
    return capture.concretely([&] {
      return capture.constant(Object::checked(PyObject_GetAttr(object.get(), name)).get());
    });
  }
  if (object && is(name, "__annotations__")) {
    const Object found = Object::checked(PyObject_GenericGetAttr(object.get(), name));
    return capture.readChild(this, Access::kMember, 0, name, found.get());
  }
  return object ? nullptr : partOf(capture, name);
}

// The parts of a function that the program makes, as the instruction makes it.
Variable* FunctionVariable::partOf(Capture& capture, PyObject* name) {
  if (is(name, "__name__")) return capture.constant(code()->co_name);
  if (is(name, "__qualname__")) return capture.constant(qualified_name_.get());
  Variable* const none = capture.constant(Py_None);
  if (is(name, "__doc__")) {
    PyObject* const constants = code()->co_consts;
    PyObject* const first =
        PyTuple_GET_SIZE(constants) > 0 ? PyTuple_GET_ITEM(constants, 0) : nullptr;
    return first && PyUnicode_Check(first) ? capture.constant(first) : none;
  }
  if (is(name, "__module__")) {
    const Object text = Object::checked(PyUnicode_InternFromString("__name__"));
    Variable* const found = globals_->find(capture, text.get());
    return found ? found : none;
  }
  if (!is(name, "__annotations__")) return nullptr;
  auto* dict = annotations ? dynamic_cast<DictVariable*>(annotations) : nullptr;
  if (!dict) {
    dict = capture.make<DictVariable>(&PyDict_Type);
    const std::vector<Variable*> all =
        annotations ? elementsOf(capture, annotations) : std::vector<Variable*>{};
    for (size_t i = 0; i + 1 < all.size(); i += 2) dict->setItem(capture, all[i], all[i + 1]);
    annotations = dict;
  }
  return dict;
}

bool FunctionVariable::setPart(PyObject* name, Variable* value) {
  PyObject* const constant = value ? value->constant() : nullptr;
  const bool text = constant && PyUnicode_Check(constant);
  const bool free = is(name, "__doc__") || is(name, "__module__");
  const bool fits = (text && (is(name, "__name__") || is(name, "__qualname__"))) ||
                    (value && free) ||
                    (dynamic_cast<DictVariable*>(value) && is(name, "__annotations__"));
  if (object || !fits) return false;
  std::erase_if(parts_,
                [&](const auto& each) { return PyUnicode_Compare(each.first.get(), name) == 0; });
  parts_.emplace_back(Object::share(name), value);
  return true;
}

void FunctionVariable::setAttribute(Capture& capture, PyObject* name, Variable* value) {
  PyObject* const descriptor = findTypeItem(&PyFunction_Type, name);
  if (descriptor && Py_TYPE(descriptor)->tp_descr_set) {
    if (value) capture.use(value);
    capture.changeInSide(*this);
    if (setPart(name, value)) return;
    return Variable::setAttribute(capture, name, value);
  }
  if (value) return attributes(capture)->set(capture, name, nullptr, value);
  if (!attributes(capture)->erase(capture, name)) {
    capture.raise(PyExc_AttributeError,
                  fmt::format("'function' object has no attribute '{}'", PyUnicode_AsUTF8(name)));
  }
}

Variable* FunctionVariable::call(Capture& capture, const Arguments& given) {
  if (isAllowedInGraph(object.get())) {
    if (source) capture.guards.add(source, {Check::Kind::kIdentity, object, 0, {}});
    return callOpaque(capture, object.get(), given);
  }
  const Callee kind = object ? capture.world.calleeOf(object.get()) : Callee::kUnknown;
  if (kind == Callee::kPure || kind == Callee::kCheckpoint) {
    if (source) capture.guards.add(source, {Check::Kind::kIdentity, object, 0, {}});
    return callWorld(capture, object.get(), given);
  }
  if (Variable* found = callDispatch(capture, *this, given)) return found;
  if (Variable* const found = object ? callArrayFunction(capture, object.get(), given) : nullptr) {
    // Many functions of numpy share their code.
    if (source) capture.guards.add(source, {Check::Kind::kIdentity, object, 0, {}});
    return found;
  }
  return inlineCall(capture, *this, given);
}

Variable* FunctionVariable::callMethod(Capture& capture, const std::string& name,
                                       const Arguments& given) {
  if (name != "__get__" || given.positional.empty() || !given.keywords.empty()) return nullptr;
  if (given.positional[0]->constant() == Py_None) return this;
  return capture.make<MethodVariable>(this, given.positional[0]);
}

int FunctionVariable::build(Builder& builder) {
  std::vector<int> arguments{builder.build(globals_), builder.constant(qualified_name_.get())};
  int64_t parts = 0;
  const auto add = [&](Variable* part, FunctionPart bit) {
    if (!part) return;
    arguments.push_back(builder.build(part));
    parts |= bit;
  };
  add(constant_defaults ? constant_defaults : defaults, kHasDefaults);
  add(keyword_defaults, kHasKeywordDefaults);
  add(closure, kHasClosure);
  add(annotations, kHasAnnotations);
  const int made = builder.make(StepKind::kFunction, std::move(arguments), code_, parts);
  builder.remember(this, made);
  const auto set = [&](const Object& name, Variable* value) {
    builder.effect(StepKind::kSetInstanceItem, {made, builder.build(value)}, name);
  };
  for (const auto& [name, value] : parts_) set(name, value);
  if (!attributes_) return made;
  for (const auto& [name, value] : attributes_->entriesMade()) set(name, value);
  return made;
}

// ---- methods ----

void MethodVariable::guard(Capture& capture) {
  if (!object) return;
  if (source) {
    capture.guards.add(source, {Check::Kind::kType, typeObject(&PyMethod_Type), 0, {}});
  }
  function_ = capture.readChild(this, Access::kMethodFunction, 0, nullptr,
                                PyMethod_GET_FUNCTION(object.get()));
  self_ = capture.readChild(this, Access::kMethodSelf, 0, nullptr, PyMethod_GET_SELF(object.get()));
}

Variable* MethodVariable::ownAttribute(Capture& capture, PyObject* name) {
  if (is(name, "__self__")) return self_;
  if (is(name, "__func__")) return function_;
  return getAttribute(capture, function_, name);
}

Variable* MethodVariable::call(Capture& capture, const Arguments& given) {
  Arguments all{{self_}, given.keywords};
  all.positional.insert(all.positional.end(), given.positional.begin(), given.positional.end());
  return callVariable(capture, function_, all);
}

int MethodVariable::build(Builder& builder) {
  return builder.make(StepKind::kMethod, {builder.build(function_), builder.build(self_)});
}

}  // namespace wick::capture
