#include "python/script_names.h"

#include <fmt/format.h>

#include <mutex>

#include "core/conform.h"
#include "core/error.h"
#include "frontend/builtin_table.h"
#include "frontend/decorators.h"
#include "frontend/parser.h"
#include "frontend/type_resolver.h"
#include "ir/operator.h"
#include "python/convert.h"
#include "python/plain_types.h"
#include "python/tensor_object.h"

namespace wick::python {
namespace {

// ---- calls of Python ----

// A function that stays Python's, with the type that its result must have.
class PythonCallee : public RefCounted {
 public:
  PythonCallee(Owned function, TypePtr result)
      : function(std::move(function)), result(std::move(result)) {}
  const SharedObject function;
  const TypePtr result;
};

void callKept(CallFrame& frame) {
  auto* callee = dynamic_cast<PythonCallee*>(&frame.args[0].toCapsule());
  WICK_ASSERT(callee != nullptr, "no function of Python");
  frame.results[0] = conform(callPython(callee->function.get(), frame.args[1].elements()),
                             callee->result, Conversions::Python);
}

const OperatorRecord kScriptNamesRecords[] = {
    {"wick::_call_python(Any function, Any[] arguments) -> Any", callKept,
     kSideEffects | kNondeterministic},
};
const RegisterOperators kScriptNamesRegistered(kScriptNamesRecords);

class PythonFunctionValue : public SugaredValue {
 public:
  PythonFunctionValue(Owned function, TypePtr result)
      : callee_(makeRef<PythonCallee>(std::move(function), std::move(result))) {}
  std::string kind() const override { return "function of Python"; }
  SugaredValuePtr call(const SourceRange& range, GraphFunction& fn, std::vector<NamedValue> args,
                       std::vector<NamedValue> kwargs, size_t) override {
    if (!kwargs.empty()) {
      throwCompileError(range, "calls of functions that stay Python's take no keywords");
    }
    Graph& graph = *fn.graph();
    std::vector<Value*> values;
    for (const NamedValue& arg : args) values.push_back(arg.value);
    Value* function = graph.insertConstant(IValue::capsule(callee_), types::Any());
    Value* list = graph.insertNode(graph.createList(types::Any(), values))->output();
    Node* node = graph.create(Symbol::fromQualString("wick::_call_python"), {function, list});
    node->output()->setType(types::Any());
    graph.insertNode(node)->setRange(range);
    Node* cast = graph.create(prim::unchecked_cast, {node->output()});
    cast->output()->setType(callee_->result);
    return std::make_shared<SimpleValue>(graph.insertNode(cast)->output());
  }

 private:
  Ref<PythonCallee> callee_;
};

// A function that stays Python's: (function, name of its result's type).
SugaredValuePtr keptFunction(PyObject* pair) {
  const char* type = PyUnicode_AsUTF8(PyTuple_GET_ITEM(pair, 1));
  if (!type) throw PythonError();
  return std::make_shared<PythonFunctionValue>(
      Owned::share(PyTuple_GET_ITEM(pair, 0)),
      TypeResolver().typeOf(Parser(type).parseExpression()));
}

// ---- modules ----

class ModuleValue : public SugaredValue {
 public:
  ModuleValue(Value* self, std::shared_ptr<ModuleInfo> info)
      : self_(self), info_(std::move(info)) {}
  std::string kind() const override { return "module"; }
  Value* asValue(const SourceRange&, GraphFunction&) override { return self_; }

  SugaredValuePtr attr(const SourceRange& range, GraphFunction& fn,
                       const std::string& field) override {
    if (const auto found = info_->submodules.find(field); found != info_->submodules.end()) {
      return child(range, fn, found->first, found->second);
    }
    if (const auto found = info_->values.find(field); found != info_->values.end()) {
      return sugared(found->second->get(), field, fn, range);
    }
    if (SugaredValuePtr kept = pythonMethod(field)) return kept;
    declareMethod(info_, field);
    return SimpleValue(self_).attr(range, fn, field);
  }
  bool hasAttr(const SourceRange& range, GraphFunction& fn, const std::string& field) override {
    if (info_->submodules.count(field) || info_->values.count(field)) return true;
    declareMethod(info_, field);
    return SimpleValue(self_).hasAttr(range, fn, field);
  }
  void setAttr(const SourceRange& range, GraphFunction& fn, const std::string& field,
               Value* value) override {
    SimpleValue(self_).setAttr(range, fn, field, value);
  }
  SugaredValuePtr call(const SourceRange& range, GraphFunction& fn, std::vector<NamedValue> args,
                       std::vector<NamedValue> kwargs, size_t num_binders) override {
    return attr(range, fn, "forward")
        ->call(range, fn, std::move(args), std::move(kwargs), num_binders);
  }

  std::vector<SugaredValuePtr> asTuple(const SourceRange& range, GraphFunction& fn,
                                       std::optional<size_t>) override {
    return children(range, fn);
  }
  SugaredValuePtr getItem(const SourceRange& range, GraphFunction& fn, Value* index,
                          TypePtr hint) override {
    return elements(range, fn)->getItem(range, fn, index, std::move(hint));
  }
  SugaredValuePtr iterate(const SourceRange& range, GraphFunction& fn) override {
    return elements(range, fn);
  }
  bool shouldUnroll() const override { return info_->is_container; }
  std::optional<size_t> staticLength() const override {
    return info_->is_container ? std::optional<size_t>(info_->order.size()) : std::nullopt;
  }
  Value* length(const SourceRange& range, GraphFunction& fn) override {
    return elements(range, fn)->length(range, fn);
  }

 private:
  SugaredValuePtr child(const SourceRange& range, GraphFunction& fn, const std::string& name,
                        const std::shared_ptr<ModuleInfo>& info) const {
    Graph& graph = *fn.graph();
    Node* node = graph.insertNode(graph.createGetAttr(self_, name));
    node->setRange(range);
    return std::make_shared<ModuleValue>(node->output(), info);
  }
  std::vector<SugaredValuePtr> children(const SourceRange& range, GraphFunction& fn) const {
    if (!info_->is_container) {
      throwCompileError(range, "a module of class {} cannot be iterated over",
                        readableClassName(info_->type->name()));
    }
    std::vector<SugaredValuePtr> out;
    for (const std::string& name : info_->order) {
      out.push_back(child(range, fn, name, info_->submodules.at(name)));
    }
    return out;
  }
  SugaredValuePtr elements(const SourceRange& range, GraphFunction& fn) const {
    return std::make_shared<SugaredTuple>(children(range, fn));
  }
  // A method marked @ignore.
  SugaredValuePtr pythonMethod(const std::string& field) const {
    if (!info_->method_source) return nullptr;
    const Owned found =
        checked(PyObject_CallFunction(info_->method_source->get(), "s", field.c_str()));
    if (found.get() == Py_None || PyTuple_GET_SIZE(found.get()) != 2) return nullptr;
    return keptFunction(found.get());
  }

  Value* self_;
  std::shared_ptr<ModuleInfo> info_;
};

class ModuleSelf : public Self {
 public:
  explicit ModuleSelf(std::shared_ptr<ModuleInfo> info) : info_(std::move(info)) {}
  SugaredValuePtr makeSugared(Value* self) const override {
    return std::make_shared<ModuleValue>(self, info_);
  }
  ClassTypePtr classType() const override { return info_->type; }

 private:
  std::shared_ptr<ModuleInfo> info_;
};

// A module of Python that is no namespace of the language: its members are what they are.
class PythonModuleNames : public SugaredValue {
 public:
  PythonModuleNames(Owned module, std::string name)
      : module_(std::move(module)), name_(std::move(name)) {}
  std::string kind() const override { return "module '" + name_ + "'"; }
  SugaredValuePtr attr(const SourceRange& range, GraphFunction& fn,
                       const std::string& field) override {
    const Owned found(PyObject_GetAttrString(module_.get(), field.c_str()));
    if (!found) {
      PyErr_Clear();
      throwCompileError(range, "module '{}' has no attribute '{}'", name_, field);
    }
    return sugared(found.get(), name_ + "." + field, fn, range);
  }

 private:
  SharedObject module_;
  std::string name_;
};

// The text of an attribute, or nothing.
std::string textAttribute(PyObject* object, const char* name) {
  const Owned found(PyObject_GetAttrString(object, name));
  if (!found) PyErr_Clear();
  if (!found || !PyUnicode_Check(found.get())) return "";
  return PyUnicode_AsUTF8(found.get());
}

// What wick.jit makes of a function or class.
Owned askScripting(const char* question, PyObject* object) {
  const Owned jit = checked(PyImport_ImportModule("wick.jit"));
  return checked(PyObject_CallMethod(jit.get(), question, "O", object));
}

}  // namespace

namespace {

std::mutex& compileMutex() {
  static auto& made = *new std::mutex;  // threads may outlive main
  return made;
}
thread_local int compile_turns = 0;

}  // namespace

CompileTurn::CompileTurn() {
  if (compile_turns == 0) {
    const WithoutGil others;
    enterEngine();
    compileMutex().lock();
  }
  ++compile_turns;
}

CompileTurn::~CompileTurn() {
  if (--compile_turns > 0) return;
  compileMutex().unlock();
  leaveEngine();
}

const std::shared_ptr<CompilationUnit>& scriptUnit() {
  static auto* unit = new std::shared_ptr<CompilationUnit>(std::make_shared<CompilationUnit>());
  return *unit;
}

SugaredValuePtr sugared(PyObject* object, const std::string& name, GraphFunction& fn,
                        const SourceRange& range) {
  if (PyModule_Check(object)) {
    std::string language = textAttribute(object, "_language_name");
    if (language.empty() && textAttribute(object, "__name__") == "math") language = "math";
    if (!language.empty()) return std::make_shared<BuiltinModule>(language);
    return std::make_shared<PythonModuleNames>(Owned::share(object), name);
  }
  if (const std::string text = textAttribute(object, "_text"); !text.empty()) {
    const size_t dot = text.rfind('.');
    if (dot == std::string::npos) throwCompileError(range, "'{}' is no function", name);
    return builtinMember(text.substr(0, dot), text.substr(dot + 1), fn);
  }
  if (GraphFunction* function = scriptFunctionIn(object)) {
    return std::make_shared<FunctionValue>(function);
  }
  if (PyExceptionClass_Check(object)) {
    return std::make_shared<ExceptionValue>(textAttribute(object, "__name__"));
  }
  if (PyType_Check(object)) {
    const std::string class_name = textAttribute(object, "__name__");
    if (object == reinterpret_cast<PyObject*>(&PyLong_Type) ||
        object == reinterpret_cast<PyObject*>(&PyFloat_Type) ||
        object == reinterpret_cast<PyObject*>(&PyBool_Type) ||
        object == reinterpret_cast<PyObject*>(&PyUnicode_Type)) {
      return builtinValue(class_name, fn);
    }
    const Owned found = askScripting("_class_for", object);
    if (PyUnicode_Check(found.get())) {
      const TypePtr type = scriptUnit()->findType(PyUnicode_AsUTF8(found.get()));
      if (SugaredValuePtr value = type ? sugaredType(type) : nullptr) return value;
    }
    throwCompileError(range, "the class '{}' has no meaning in a program", class_name);
  }
  if (PyCallable_Check(object) && !isTensor(object)) {
    const Owned found = askScripting("_function_for", object);
    if (GraphFunction* function = scriptFunctionIn(found.get())) {
      return std::make_shared<FunctionValue>(function);
    }
    if (PyTuple_Check(found.get())) return keptFunction(found.get());
    throwCompileError(
        range, "'{}' is a {}, which a program cannot call: it has no source that can be compiled",
        name, Py_TYPE(object)->tp_name);
  }
  IValue value;
  if (!isTensor(object) && !PyList_Check(object) && !PyDict_Check(object) &&
      tryValue(object, value)) {
    return std::make_shared<SimpleValue>(fn.graph()->insertConstant(std::move(value)));
  }
  throwCompileError(range,
                    "'{}' is a value of Python's class {}, which a program cannot close over; "
                    "pass it as an argument, or make it an attribute of a module",
                    name, Py_TYPE(object)->tp_name);
}

Owned PythonNames::find(const std::string& name) const {
  const Owned found = checked(PyObject_CallFunction(lookup_.get(), "s", name.c_str()));
  if (found.get() == Py_None) return Owned();
  return Owned::share(PyTuple_GET_ITEM(found.get(), 0));
}

SugaredValuePtr PythonNames::resolveValue(const std::string& name, GraphFunction& fn,
                                          const SourceRange& range) {
  const Owned found = find(name);
  return found ? sugared(found.get(), name, fn, range) : nullptr;
}

TypePtr PythonNames::resolveType(const std::string& name, const SourceRange&) {
  if (const TypePtr known = scriptUnit()->findType(name)) return known;
  const size_t dot = name.find('.');
  Owned found = find(name.substr(0, dot));
  size_t from = dot;
  while (found && from != std::string::npos) {
    const size_t next = name.find('.', from + 1);
    found =
        Owned(PyObject_GetAttrString(found.get(), name.substr(from + 1, next - from - 1).c_str()));
    if (!found) PyErr_Clear();
    from = next;
  }
  if (!found || !PyType_Check(found.get())) return nullptr;
  if (found.get() == reinterpret_cast<PyObject*>(tensor_type)) return types::Tensor();
  const Owned text = askScripting("_class_for", found.get());
  if (!PyUnicode_Check(text.get())) return nullptr;
  return scriptUnit()->findType(PyUnicode_AsUTF8(text.get()));
}

std::vector<Def> parseDefinitions(const std::string& text, const std::string& file, size_t line) {
  std::vector<Def> out;
  const auto source = std::make_shared<const Source>(text, file, line);
  for (const Stmt& statement : Parser(source).parseModule()) {
    if (statement.kind() != TK_DEF) {
      throwCompileError(statement.range(), "expected a function with a name");
    }
    const Def def(statement.tree());
    out.push_back(hasDecorator(def, "unused") ? unusedFunction(def) : def);
  }
  return out;
}

void declareMethod(const std::shared_ptr<ModuleInfo>& info, const std::string& name) {
  if (!info->method_source || info->type->findMethod(name) || info->type->findAttribute(name) ||
      info->type->findConstant(name)) {
    return;
  }
  const Owned found = checked(PyObject_CallFunction(info->method_source->get(), "s", name.c_str()));
  if (found.get() == Py_None || PyTuple_GET_SIZE(found.get()) != 4) return;
  const char *text = nullptr, *file = nullptr;
  Py_ssize_t line = 1;
  PyObject* names = nullptr;
  if (!PyArg_ParseTuple(found.get(), "ssnO", &text, &file, &line, &names)) throw PythonError();
  defineMethods(*scriptUnit(), info->type->name(),
                parseDefinitions(text, file, static_cast<size_t>(line)),
                std::make_shared<PythonNames>(names), std::make_shared<ModuleSelf>(info));
}

}  // namespace wick::python
