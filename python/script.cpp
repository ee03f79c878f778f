#include "python/script.h"

#include <fmt/format.h>

#include "core/conform.h"
#include "frontend/parser.h"
#include "frontend/type_resolver.h"
#include "ir/dot.h"
#include "ir/printer.h"
#include "passes/pipeline.h"
#include "python/device_maps.h"
#include "python/interrupts.h"
#include "python/module.h"
#include "python/plain_types.h"
#include "python/pybind.h"
#include "python/script_names.h"
#include "python/tracing.h"
#include "runtime/call.h"
#include "runtime/device_moves.h"
#include "runtime/frozen_module.h"
#include "runtime/inference.h"
#include "runtime/module.h"
#include "serialization/export.h"
#include "serialization/exported/write.h"
#include "serialization/import.h"
#include "wick.h"

namespace wick::python {
namespace {

struct ScriptFunction {
  GraphFunction* function = nullptr;
  std::shared_ptr<void> owner;
};

struct ScriptModule {
  Module module;
  std::shared_ptr<ModuleInfo> info;  // of what was made of Python
};

// An object of a class that is no module, an enum, a future: what has no form of its own.
struct ScriptValue {
  IValue value;
};

struct ScriptGraph {
  std::shared_ptr<Graph> graph;
};

struct Unit {
  std::shared_ptr<CompilationUnit> unit = std::make_shared<CompilationUnit>();
};

Kwargs kwargsOf(const py::kwargs& kwargs) {
  Kwargs out;
  for (const auto& [name, value] : kwargs) out.emplace_back(textIn(name), valueOf(value));
  return out;
}

// Before a call of compiled code: what a trace follows of its arguments, behind `bound` others.
void stashFollowed(const py::args& args, const std::vector<IValue>& values,
                   const py::kwargs& kwargs, size_t bound) {
  tracing::Tracer* tracer = tracing::Tracer::active();
  if (!tracer) return;
  notePlace(*tracer);
  std::vector<Value*> followed(bound);
  for (size_t i = 0; i < values.size(); ++i) {
    followed.push_back(followedValue(*tracer, args[i].ptr(), values[i]));
  }
  for (const auto& [name, value] : kwargs) {
    if (isFollowed(value.ptr())) warnOfConstant("number");
  }
  tracer->stash(std::move(followed));
}

// The result for Python; a number of a recorded call is followed.
py::object scriptResult(const IValue& result) {
  tracing::Tracer* tracer = tracing::Tracer::active();
  if (tracer && tracer->result(0)) return given(followedObject(*tracer, result, tracer->result(0)));
  return pythonOf(result);
}

py::object callScript(const ScriptFunction& self, const py::args& args, const py::kwargs& kwargs) {
  std::vector<IValue> values = valuesOf(args);
  Kwargs named = kwargsOf(kwargs);
  const RunOptions options = interruptibleRun();
  const std::shared_ptr<void> owner = self.owner;
  stashFollowed(args, values, kwargs, 0);
  return scriptResult(withoutGil([&] {
    return callFunction(*self.function, std::move(values), std::move(named), options, &owner);
  }));
}

py::object callOnModule(const ScriptModule& self, const std::string& method, const py::args& args,
                        const py::kwargs& kwargs) {
  std::vector<IValue> values = valuesOf(args);
  Kwargs named = kwargsOf(kwargs);
  const RunOptions options = interruptibleRun();
  stashFollowed(args, values, kwargs, 1);
  return scriptResult(withoutGil([&] {
    return method.empty() ? self.module(std::move(values), std::move(named), options)
                          : self.module.run(method, std::move(values), std::move(named), options);
  }));
}

py::object callOnObject(const ScriptValue& self, const std::string& name, const py::args& args,
                        const py::kwargs& kwargs) {
  const ObjectRef object(&self.value.toObject());
  auto* method = dynamic_cast<GraphFunction*>(object->type()->findMethod(name));
  if (!method) throw UsageError("the object has no method '" + name + "'");
  std::vector<IValue> values = valuesOf(args);
  Kwargs named = kwargsOf(kwargs);
  const RunOptions options = interruptibleRun();
  return pythonOf(withoutGil(
      [&] { return callMethod(object, *method, std::move(values), std::move(named), options); }));
}

std::string optimized(const GraphFunction& function) {
  const std::shared_ptr<Graph> copy = function.graph()->copy();
  runPipeline(*copy);
  return printGraph(*copy);
}

// ---- compiling ----

std::shared_ptr<PythonNames> namesOf(const py::object& lookup) {
  return std::make_shared<PythonNames>(lookup.ptr());
}

ScriptFunction declareFunction(const std::string& qualified_name, const std::string& text,
                               const std::string& file, size_t line, const py::object& lookup) {
  const CompileTurn turn;
  const std::vector<Def> definitions = parseDefinitions(text, file, line);
  if (definitions.size() != 1) throw UsageError("expected the source of one function");
  CompilationUnit& unit = *scriptUnit();
  std::string name = qualified_name;
  if (unit.findFunction(name)) name = unit.mangle(name);
  const size_t dot = name.rfind('.');
  const auto made = defineFunctions(
      unit, name.substr(0, dot), {definitions[0].withName(name.substr(dot + 1))}, namesOf(lookup));
  return {made[0], scriptUnit()};
}

// Returns the qualified name.
std::string declareClass(const std::string& qualified_name, const std::string& text,
                         const std::string& file, size_t line, const py::object& lookup) {
  const CompileTurn turn;
  const auto source = std::make_shared<const Source>(text, file, line);
  const List<Stmt> statements = Parser(source).parseModule();
  if (statements.size() != 1 || statements[0].kind() != TK_CLASS_DEF) {
    throw UsageError("expected the source of one class");
  }
  CompilationUnit& unit = *scriptUnit();
  const std::string name =
      unit.findType(qualified_name) ? unit.mangle(qualified_name) : qualified_name;
  defineClass(unit, name, ClassDef(statements[0].tree()), namesOf(lookup), /*is_module=*/false);
  return name;
}

void compileClass(const std::string& qualified_name) {
  const CompileTurn turn;
  const ClassTypePtr type = scriptUnit()->findClass(qualified_name);
  if (!type) return;  // named tuples and enums have no methods
  for (Function* method : type->methods()) method->ensureDefined();
}

TypePtr typeFromText(const std::string& text, const py::object& lookup) {
  return TypeResolver(namesOf(lookup)).typeOf(Parser(text).parseExpression());
}

// A module of a new class. Each attribute is (kind, name, type or None, value).
ScriptModule makeModule(const std::string& class_name, const py::list& attributes,
                        const py::object& method_source, const py::object& lookup,
                        bool is_container) {
  const CompileTurn turn;
  CompilationUnit& unit = *scriptUnit();
  const std::string name = unit.findType(class_name) ? unit.mangle(class_name) : class_name;
  auto info = std::make_shared<ModuleInfo>();
  info->type = std::make_shared<ClassType>(name, /*is_module=*/true);
  info->is_container = is_container;
  unit.registerType(name, info->type);
  info->method_source = std::make_shared<SharedObject>(Owned::share(method_source.ptr()));
  std::vector<IValue> values;
  for (const py::handle& each : attributes) {
    const auto parts = py::cast<py::tuple>(each);
    const auto kind = parts[0].cast<std::string>();
    const auto field = parts[1].cast<std::string>();
    const py::object value = parts[3];
    if (kind == "value") {
      info->values[field] = std::make_shared<SharedObject>(Owned::share(value.ptr()));
      continue;
    }
    if (kind == "module") {
      const auto& sub = value.cast<const ScriptModule&>();
      info->type->addAttribute(field, sub.module.type());
      if (sub.info) info->submodules[field] = sub.info;
      info->order.push_back(field);
      values.push_back(IValue(sub.module.object()));
      continue;
    }
    IValue converted = valueOf(value);
    const TypePtr type = !parts[2].is_none() ? typeFromText(parts[2].cast<std::string>(), lookup)
                         : kind == "parameter" || kind == "buffer"
                             ? (converted.isNone() ? types::None() : types::Tensor())
                             : unshapedType(converted.type());
    converted = conform(std::move(converted), type, Conversions::Python);
    if (kind == "constant") {
      info->type->addConstant(field, std::move(converted));
      continue;
    }
    info->type->addAttribute(field, type, kind == "parameter" && type->kind() == TypeKind::Tensor,
                             kind == "buffer");
    values.push_back(std::move(converted));
  }
  const auto object = makeRef<Object>(info->type, scriptUnit());
  for (size_t i = 0; i < values.size(); ++i) object->setSlot(i, std::move(values[i]));
  return {Module(ObjectRef(object)), std::move(info)};
}

void compileMethods(const ScriptModule& self, const std::vector<std::string>& names) {
  const CompileTurn turn;
  for (const std::string& name : names) {
    declareMethod(self.info, name);
    if (Function* method = self.info->type->findMethod(name)) method->ensureDefined();
  }
  // Methods that are found meanwhile follow their callers.
  for (size_t i = 0; i < self.info->type->methods().size(); ++i) {
    self.info->type->methods()[i]->ensureDefined();
  }
}

// ---- values in Python ----

PyObject* wrapObject(const IValue& value) {
  return guarded([&]() -> PyObject* {
    if (value.isObject() && value.toObject().type()->isModule()) {
      const py::object made = py::cast(ScriptModule{Module(ObjectRef(&value.toObject())), nullptr});
      const py::object wrap = py::module_::import("wick.jit").attr("_wrap");
      return wrap(made).release().ptr();
    }
    return py::cast(ScriptValue{value}).release().ptr();
  });
}

bool unwrapObject(PyObject* object, IValue& out) {
  const py::handle handle(object);
  if (py::isinstance<ScriptValue>(handle)) {
    out = handle.cast<const ScriptValue&>().value;
    return true;
  }
  if (py::isinstance<ScriptModule>(handle)) {
    out = IValue(handle.cast<const ScriptModule&>().module.object());
    return true;
  }
  // A module of wick.jit holds the one of the program.
  if (PyType_Check(object) || !PyObject_HasAttrString(object, "_c")) return false;
  const py::object inner = handle.attr("_c");
  if (!py::isinstance<ScriptModule>(inner)) return false;
  out = IValue(inner.cast<const ScriptModule&>().module.object());
  return true;
}

py::object attributeOf(const ScriptModule& self, const std::string& name) {
  if (self.module.hasAttr(name)) return pythonOf(self.module.attr(name));
  if (const IValue* constant = self.module.type()->findConstant(name)) return pythonOf(*constant);
  throw py::attribute_error(readableClassName(self.module.type()->name()) + " has no attribute '" +
                            name + "'");
}

template <class T>
py::list namedList(const Module::Named<T>& named) {
  py::list out;
  for (const auto& [name, value] : named) {
    if constexpr (std::is_same_v<T, Module>) {
      out.append(py::make_tuple(name, pythonOf(IValue(value.object()))));
    } else {
      out.append(py::make_tuple(name, pythonOf(IValue(value))));
    }
  }
  return out;
}

ScriptModule loadModuleFrom(const py::object& source, const py::object& map_location,
                            const py::object& extra_files) {
  LoadOptions options;
  options.devices = deviceMapOf(map_location);
  std::unordered_map<std::string, std::string> extra;
  options.extra_files = &extra;
  options.run = interruptibleRun();
  Module module;
  if (py::isinstance<py::bytes>(source)) {
    const auto bytes = source.cast<std::string>();
    const WithoutGil others;
    module = loadModule(copyBytes(std::as_bytes(std::span(bytes.data(), bytes.size()))), "<memory>",
                        options);
  } else {
    const auto path = source.cast<std::string>();
    const WithoutGil others;
    module = loadModule(path, options);
  }
  if (!extra_files.is_none()) {
    for (const auto& [name, contents] : extra) extra_files[py::str(name)] = py::bytes(contents);
  }
  return {std::move(module), nullptr};
}

SaveOptions saveOptions(const py::dict& extra_files) {
  SaveOptions options;
  for (const auto& [name, contents] : extra_files) {
    if (!PyBytes_Check(contents.ptr()) && !PyUnicode_Check(contents.ptr())) {
      raise(PyExc_TypeError, fmt::format("extra file '{}': expected str or bytes, got {}",
                                         textIn(name), Py_TYPE(contents.ptr())->tp_name));
    }
    options.extra_files.emplace_back(textIn(name), PyBytes_Check(contents.ptr())
                                                       ? contents.cast<std::string>()
                                                       : textIn(contents));
  }
  return options;
}

void addGraphs(py::module_& m) {
  py::class_<ScriptGraph> graph(m, "Graph", "The code of a function.");
  forbidNew(graph);
  graph.def("__str__", [](const ScriptGraph& g) { return printGraph(*g.graph); })
      .def("__repr__", [](const ScriptGraph& g) { return printGraph(*g.graph); })
      .def(
          "dot", [](const ScriptGraph& g) { return printDot(*g.graph); }, "Text for Graphviz.")
      .def("copy", [](const ScriptGraph& g) { return ScriptGraph{g.graph->copy()}; })
      .def("node_kinds", [](const ScriptGraph& g) {
        std::vector<std::string> kinds;
        for (const Node* node : g.graph->nodes()) kinds.emplace_back(node->kind().qualString());
        return kinds;
      });
}

void addFunctions(py::module_& m) {
  py::class_<ScriptFunction> function(m, "ScriptFunction", "A compiled function.");
  forbidNew(function);
  function.def("__call__", callScript)
      .def_property_readonly("qualified_name",
                             [](const ScriptFunction& f) { return f.function->qualifiedName(); })
      .def_property_readonly("name", [](const ScriptFunction& f) { return f.function->name(); })
      .def_property_readonly("schema",
                             [](const ScriptFunction& f) {
                               const CompileTurn turn;
                               return f.function->schema().str();
                             })
      .def_property_readonly("graph",
                             [](const ScriptFunction& f) {
                               const CompileTurn turn;
                               f.function->ensureDefined();
                               return ScriptGraph{f.function->graph()};
                             })
      .def("optimized_graph",
           [](const ScriptFunction& f) {
             const CompileTurn turn;
             f.function->ensureDefined();
             return optimized(*f.function);
           })
      .def("_compile", [](const ScriptFunction& f) {
        const CompileTurn turn;
        f.function->ensureDefined();
      });
  py::class_<ScriptValue> value(m, "ScriptObject",
                                "An object of a script class, an enum or a future.");
  forbidNew(value);
  value
      .def("__getattr__",
           [](const ScriptValue& self, const std::string& name) -> py::object {
             if (self.value.isEnum()) {
               if (name == "name") return py::str(self.value.toEnum().name);
               if (name == "value") return pythonOf(self.value.toEnum().value);
             } else if (self.value.isObject()) {
               const Object& object = self.value.toObject();
               if (object.type()->findAttribute(name)) return pythonOf(object.attr(name));
             }
             throw py::attribute_error(readableClassName(self.value.type()->annotation()) +
                                       " has no attribute '" + name + "'");
           })
      .def("_call", callOnObject)
      .def("_methods",
           [](const ScriptValue& self) {
             std::vector<std::string> names;
             if (!self.value.isObject()) return names;
             for (const Function* method : self.value.toObject().type()->methods()) {
               names.push_back(method->name());
             }
             return names;
           })
      .def("wait",
           [](const ScriptValue& self) {
             const IValue held = self.value;
             return pythonOf(withoutGil([&] { return held.toFuture().wait(); }));
           })
      .def("done", [](const ScriptValue& self) { return self.value.toFuture().done(); })
      .def("__repr__", [](const ScriptValue& self) { return self.value.shortRepr(); });
}

void addModules(py::module_& m) {
  py::class_<ScriptModule> module(m, "_Module");
  forbidNew(module);
  module.def("call", callOnModule)
      .def("get", attributeOf)
      .def("has",
           [](const ScriptModule& s, const std::string& name) {
             return s.module.hasAttr(name) || s.module.type()->findConstant(name) != nullptr;
           })
      .def("set", [](ScriptModule& s, const std::string& name,
                     const py::object& value) { s.module.setAttr(name, valueOf(value)); })
      .def("same",
           [](const ScriptModule& s, const ScriptModule& o) { return s.module == o.module; })
      .def("type_name", [](const ScriptModule& s) { return s.module.type()->name(); })
      .def("class_name",
           [](const ScriptModule& s) { return readableClassName(s.module.type()->name()); })
      .def("method_names", [](const ScriptModule& s) { return s.module.methodNames(); })
      .def("argument_names",
           [](const ScriptModule& s, const std::string& method) {
             const CompileTurn turn;
             std::vector<std::string> names;
             for (const Argument& argument : s.module.method(method).schema().arguments()) {
               names.push_back(argument.name);
             }
             names.erase(names.begin());
             return names;
           })
      .def("method",
           [](const ScriptModule& s, const std::string& name) {
             return ScriptFunction{&s.module.method(name), s.module.object()->owner()};
           })
      .def("dot",
           [](const ScriptModule& s, const std::string& name) {
             const CompileTurn turn;
             GraphFunction& method = s.module.method(name);
             method.ensureDefined();
             return printDot(*method.graph(), {s.module.object().get()});
           })
      .def("parameters", [](const ScriptModule& s,
                            bool recurse) { return namedList(s.module.parameters(recurse)); })
      .def("buffers",
           [](const ScriptModule& s, bool recurse) { return namedList(s.module.buffers(recurse)); })
      .def("children", [](const ScriptModule& s) { return namedList(s.module.children()); })
      .def("modules", [](const ScriptModule& s) { return namedList(s.module.modules()); })
      .def("train", [](const ScriptModule& s, bool on) { s.module.train(on); })
      .def("to",
           [](const ScriptModule& s, const py::object& dtype) {
             s.module.to(static_cast<DType>(valueOf(dtype).toInt()));
           })
      .def("to_device",
           [](const ScriptModule& s, const py::object& device) {
             const IValue object(s.module.object());
             moveTensors({&object, 1}, deviceOf(device.ptr()));
           })
      .def("state_dict", [](const ScriptModule& s) { return pythonOf(s.module.stateDict()); })
      .def("load_state_dict",
           [](const ScriptModule& s, const py::object& state, bool strict) {
             const auto found = s.module.loadStateDict(valueOf(state), strict);
             return std::make_pair(found.missing, found.unexpected);
           })
      .def("clone",
           [](const ScriptModule& s) {
             return ScriptModule{s.module.clone(), nullptr};
           })
      .def("save",
           [](const ScriptModule& s, const std::string& path, const py::dict& extra) {
             const SaveOptions options = saveOptions(extra);
             const WithoutGil others;
             saveModule(s.module, path, options);
           })
      .def_static("example_sizes",
                  [](const std::vector<std::tuple<std::string, int64_t, int64_t>>& sizes) {
                    std::vector<DynamicSize> open;
                    for (const auto& [name, least, most] : sizes)
                      open.push_back({name, least, most});
                    std::vector<std::vector<int64_t>> examples;
                    for (int64_t e = 0; e < (open.empty() ? 1 : kExportExamples); ++e) {
                      examples.push_back(exampleSizes(open, e));
                    }
                    return examples;
                  })
      // Sizes are (name, least, most); an example is a value for each of them, and the arguments.
      .def("save_exported",
           [](const ScriptModule& s, const std::string& path, const py::list& examples,
              const std::vector<std::tuple<std::string, int64_t, int64_t>>& sizes,
              const std::string& method) {
             ExportedOptions options;
             options.method = method;
             for (const auto& [name, least, most] : sizes)
               options.sizes.push_back({name, least, most});
             std::vector<ExportExample> made;
             for (const py::handle& example : examples) {
               const auto [values, arguments] =
                   py::cast<std::pair<std::vector<int64_t>, py::tuple>>(example);
               made.push_back({values, {}});
               for (const py::handle& argument : arguments) {
                 made.back().arguments.push_back(valueOf(argument));
               }
             }
             const WithoutGil others;
             saveExported(s.module, made, path, options);
           })
      .def("save_to_bytes",
           [](const ScriptModule& s, const py::dict& extra) {
             const CompileTurn turn;
             return py::bytes(saveModuleToString(s.module, saveOptions(extra)));
           })
      .def("code",
           [](const ScriptModule& s) {
             const CompileTurn turn;
             return ModuleArchive(s.module).code();
           })
      .def("freeze",
           [](const ScriptModule& s, std::vector<std::string> methods, bool optimize) {
             const WithoutGil others;
             return ScriptModule{freeze(s.module, {std::move(methods), optimize}), nullptr};
           })
      .def("compile", compileMethods)
      .def("forget_python", [](const ScriptModule& s) {
        if (!s.info) return;
        s.info->method_source = nullptr;
        s.info->values.clear();
      });
  m.def("_make_module", makeModule);
  // A module whose forward calls the function, as archives hold functions.
  m.def("_module_of_function", [](const ScriptFunction& f) {
    const CompileTurn turn;
    ModuleBuilder builder("PlainFunction");
    f.function->ensureDefined();
    builder.defineCall("forward", *f.function);
    builder.keep(f.owner);
    return ScriptModule{builder.build(), nullptr};
  });
  m.def("_load_module", loadModuleFrom);
  m.def("_optimize_for_inference", [](const ScriptModule& s, const std::string& method) {
    const WithoutGil others;
    const std::shared_ptr<GraphFunction> made =
        optimizeForInference(s.module.object(), s.module.method(method));
    return ScriptFunction{made.get(), made};
  });
}

void addUnits(py::module_& m) {
  py::class_<Unit> unit(m, "_UnitObject");
  forbidNew(unit);
  unit.def("define",
           [](const Unit& u, const std::string& source, const std::string& file) {
             const WithoutGil others;
             compileInto(u.unit, source, file);
           })
      .def("find",
           [](const Unit& u, const std::string& name) -> std::optional<ScriptFunction> {
             GraphFunction* found = u.unit->findFunction("__torch__." + name);
             if (!found) return std::nullopt;
             return ScriptFunction{found, u.unit};
           })
      .def("names", [](const Unit& u) { return Program(u.unit).functionNames(); });
  m.def("_Unit", [] { return Unit(); });
  m.def("_declare_function", declareFunction);
  m.def("_is_value", [](const py::object& object) { valueOf(object); });
  m.def("_declare_class", declareClass);
  m.def("_compile_class", compileClass);
}

}  // namespace

GraphFunction* scriptFunctionIn(PyObject* object) {
  const py::handle handle(object);
  return py::isinstance<ScriptFunction>(handle) ? handle.cast<const ScriptFunction&>().function
                                                : nullptr;
}

PyObject* scriptFunctionObject(GraphFunction* function, std::shared_ptr<void> owner) {
  return py::cast(ScriptFunction{function, std::move(owner)}).release().ptr();
}

void addScript(PyObject* module) {
  auto m = py::reinterpret_borrow<py::module_>(module);
  addGraphs(m);
  addFunctions(m);
  addModules(m);
  addUnits(m);
  setObjectConversion({wrapObject, unwrapObject});
}

}  // namespace wick::python
