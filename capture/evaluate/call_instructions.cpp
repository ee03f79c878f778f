// Instructions for calls, functions, attributes and imports.
#include <fmt/format.h>

#include "capture/evaluate/capture.h"
#include "capture/evaluate/instructions.h"
#include "capture/evaluate/protocol.h"
#include "capture/values/builtin.h"
#include "capture/values/constant.h"
#include "capture/values/dict.h"
#include "capture/values/function.h"
#include "capture/values/sequence.h"

namespace wick::capture {
namespace {

bool isNull(Variable* entry) {
  auto* const mark = dynamic_cast<MarkVariable*>(entry);
  return mark && mark->kind == MarkVariable::Kind::kNull;
}

// ---- attributes ----

void loadAttr(EvalFrame& f, uint32_t arg) {
  f.push(getAttribute(f.capture, f.pop(), f.name(arg)));
}

// Pushes a bound method as CALL takes functions: behind a NULL.
void loadMethod(EvalFrame& f, uint32_t arg) {
  Variable* const found = getAttribute(f.capture, f.pop(), f.name(arg));
  f.push(f.capture.make<MarkVariable>(MarkVariable::Kind::kNull));
  f.push(found);
}

void storeAttr(EvalFrame& f, uint32_t arg) {
  Variable* const object = f.pop();
  setAttribute(f.capture, object, f.name(arg), f.pop());
}

void deleteAttr(EvalFrame& f, uint32_t arg) {
  setAttribute(f.capture, f.pop(), f.name(arg), nullptr);
}

// ---- calls ----

void keywordNames(EvalFrame& f, uint32_t arg) {
  f.keyword_names = Object::share(f.constant(arg));
}

void call(EvalFrame& f, uint32_t arg) {
  std::vector<Variable*> values = f.popMany(arg);
  Variable* function = f.pop();
  Variable* const below = f.pop();
  if (!isNull(below)) {
    values.insert(values.begin(), function);
    function = below;
  }
  Arguments given;
  const Object names = std::exchange(f.keyword_names, Object());
  const size_t named = names ? static_cast<size_t>(PyTuple_GET_SIZE(names.get())) : 0;
  if (named > values.size()) breakGraph("a call with more names than arguments");
  const size_t positional = values.size() - named;
  given.positional.assign(values.begin(), values.begin() + static_cast<ptrdiff_t>(positional));
  for (size_t i = 0; i < named; ++i) {
    given.keywords.emplace_back(
        Object::share(PyTuple_GET_ITEM(names.get(), static_cast<Py_ssize_t>(i))),
        values[positional + i]);
  }
  f.push(callVariable(f.capture, function, given));
}

void callFunctionEx(EvalFrame& f, uint32_t arg) {
  Variable* const keywords = (arg & 1) ? f.pop() : nullptr;
  Variable* const positional = f.pop();
  Variable* const function = f.pop();
  if (!isNull(f.pop())) breakGraph("a call without the NULL that belongs to it");
  Arguments given;
  given.positional = elementsOf(f.capture, positional);
  if (keywords) {
    auto* const dict = f.capture.as<DictVariable>(keywords);
    if (!dict) breakGraph("keyword arguments of a mapping that is no dict");
    for (const auto& [key, value] : dict->items(f.capture)) {
      PyObject* const name = f.capture.use(key)->constant();
      if (!name || !PyUnicode_Check(name)) breakGraph("a keyword that is no text");
      given.keywords.emplace_back(Object::share(name), value);
    }
  }
  f.push(callVariable(f.capture, function, given));
}

// ---- functions ----

void makeFunction(EvalFrame& f, uint32_t arg) {
  PyObject* const code = f.pop()->constant();
  if (!code || !PyCode_Check(code)) breakGraph("a function without a code");
  PyObject* const name = reinterpret_cast<PyCodeObject*>(code)->co_qualname;
  auto* const made =
      f.capture.make<FunctionVariable>(Object::share(code), f.globals, Object::share(name));
  if (arg & 8) made->closure = f.pop();
  if (arg & 4) made->annotations = f.pop();
  if (arg & 2) made->keyword_defaults = f.pop();
  if (arg & 1) {
    // The defaults are a tuple, maybe one of constants.
    Variable* const given = f.pop();
    made->defaults = f.capture.make<TupleVariable>(elementsOf(f.capture, given), &PyTuple_Type);
    if (given->constant()) made->constant_defaults = given;
  }
  f.push(made);
}

// ---- imports ----

// Returns the full name of a module that is imported relative to the package of the function.
Object absoluteName(EvalFrame& f, PyObject* name, long levels) {
  if (levels == 0) return Object::share(name);
  PyObject* const package = PyDict_GetItemString(f.globals->object.get(), "__package__");
  const char* const text = package && PyUnicode_Check(package) ? PyUnicode_AsUTF8(package) : "";
  std::string full = text ? text : "";
  for (long i = 1; i < levels && !full.empty(); ++i) {
    const size_t dot = full.rfind('.');
    full = dot == std::string::npos ? "" : full.substr(0, dot);
  }
  if (full.empty()) breakGraph("an import relative to no package");
  if (PyUnicode_GET_LENGTH(name) > 0) full += fmt::format(".{}", PyUnicode_AsUTF8(name));
  return Object::checked(PyUnicode_FromString(full.c_str()));
}

void importName(EvalFrame& f, uint32_t arg) {
  const Object from = f.capture.objectFor(f.pop()), level = f.capture.objectFor(f.pop());
  PyObject* const modules = PyImport_GetModuleDict();
  const Object full = absoluteName(f, f.name(arg), PyLong_AsLong(level.get()));
  PyObject* const name = full.get();
  if (!PyDict_GetItemWithError(modules, name)) {
    breakGraph(fmt::format("the import of '{}'", PyUnicode_AsUTF8(name)));
  }

  // The module is there, so that importing runs nothing.
  f.push(f.capture.concretely([&] {
    return f.capture.pinned(
        Object::checked(PyImport_ImportModuleLevelObject(name, nullptr, nullptr, from.get(), 0))
            .get());
  }));
}

void importFrom(EvalFrame& f, uint32_t arg) {
  Variable* const found = findAttribute(f.capture, f.peek(1), f.name(arg));
  if (!found) breakGraph(fmt::format("the import of '{}'", PyUnicode_AsUTF8(f.name(arg))));
  f.push(found);
}

void loadAssertionError(EvalFrame& f, uint32_t) {
  f.push(f.capture.pinned(PyExc_AssertionError));
}

}  // namespace

void addCallInstructions(InstructionTable& table) {
  const auto set = [&](Op op, InstructionFunction function) {
    table[static_cast<uint8_t>(op)] = function;
  };
  set(Op::LOAD_ATTR, loadAttr);
  set(Op::LOAD_METHOD, loadMethod);
  set(Op::STORE_ATTR, storeAttr);
  set(Op::DELETE_ATTR, deleteAttr);
  set(Op::KW_NAMES, keywordNames);
  set(Op::CALL, call);
  set(Op::CALL_FUNCTION_EX, callFunctionEx);
  set(Op::MAKE_FUNCTION, makeFunction);
  set(Op::IMPORT_NAME, importName);
  set(Op::IMPORT_FROM, importFrom);
  set(Op::LOAD_ASSERTION_ERROR, loadAssertionError);
}

}  // namespace wick::capture
