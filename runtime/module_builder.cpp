#include "runtime/module_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "core/conform.h"
#include "core/error.h"
#include "frontend/compile.h"
#include "frontend/parser.h"
#include "frontend/resolver.h"

namespace wick {
namespace {

constexpr const char* kPrefix = "__torch__.";

bool isIdentifier(std::string_view name) {
  const auto letter = [](char c) {
    return c == '_' || std::isalpha(static_cast<unsigned char>(c));
  };
  return !name.empty() && letter(name[0]) && std::ranges::all_of(name, [&](char c) {
    return letter(c) || std::isdigit(static_cast<unsigned char>(c));
  });
}

}  // namespace

// What the module's objects keep alive: its code, and that of its parts.
struct ModuleBuilder::Owner {
  std::shared_ptr<CompilationUnit> unit = std::make_shared<CompilationUnit>();
  std::vector<std::shared_ptr<void>> others;
};

ModuleBuilder::ModuleBuilder(const std::string& class_name) : owner_(std::make_shared<Owner>()) {
  const bool qualified = class_name.starts_with(kPrefix);
  const std::string last = class_name.substr(class_name.rfind('.') + 1);
  if (!isIdentifier(last) || (!qualified && last != class_name)) {
    throw UsageError(fmt::format("ModuleBuilder: '{}' is no name for a class", class_name));
  }
  const std::string name = qualified ? class_name : kPrefix + class_name;
  type_ = std::make_shared<ClassType>(name, /*is_module=*/true);
  owner_->unit->registerType(name, type_);
  add("training", types::Bool(), IValue(true), false, false);
}

ModuleBuilder::~ModuleBuilder() = default;

void ModuleBuilder::checkNew(const std::string& name) const {
  WICK_ASSERT(owner_ != nullptr, "the module has been built");
  // Submodules may be called "0"; a dot would be a path.
  if (name.empty() || name.find('.') != std::string::npos) {
    throw UsageError(fmt::format("ModuleBuilder: '{}' is no name for an attribute", name));
  }
  if (type_->findAttribute(name) || type_->findConstant(name) || type_->findMethod(name)) {
    throw UsageError(
        fmt::format("ModuleBuilder: {} has '{}' already", readableClassName(type_->name()), name));
  }
}

void ModuleBuilder::add(const std::string& name, TypePtr type, IValue value, bool is_parameter,
                        bool is_buffer) {
  checkNew(name);
  type_->addAttribute(name, std::move(type), is_parameter, is_buffer);
  values_.push_back(std::move(value));
}

ModuleBuilder& ModuleBuilder::registerParameter(const std::string& name, Tensor tensor,
                                                bool requires_grad) {
  if (!tensor.defined()) throw UsageError(fmt::format("parameter '{}' is no tensor", name));
  if (requires_grad && (isFloating(tensor.dtype()) || isComplex(tensor.dtype()))) {
    tensor.setRequiresGrad(true);
  }
  add(name, types::Tensor(), IValue(std::move(tensor)), true, false);
  return *this;
}

ModuleBuilder& ModuleBuilder::registerBuffer(const std::string& name, Tensor tensor) {
  if (!tensor.defined()) throw UsageError(fmt::format("buffer '{}' is no tensor", name));
  add(name, types::Tensor(), IValue(std::move(tensor)), false, true);
  return *this;
}

ModuleBuilder& ModuleBuilder::registerModule(const std::string& name, const Module& module) {
  add(name, module.type(), IValue(module.object()), false, false);
  keep(module.object()->owner());
  return *this;
}

ModuleBuilder& ModuleBuilder::registerAttribute(const std::string& name, TypePtr type,
                                                IValue value) {
  try {
    value = conform(std::move(value), type, Conversions::Python);
  } catch (const RuntimeError& error) {
    throw UsageError(
        fmt::format("{}.{}: {}", readableClassName(type_->name()), name, error.brief()));
  }
  add(name, std::move(type), std::move(value), false, false);
  return *this;
}

ModuleBuilder& ModuleBuilder::registerConstant(const std::string& name, IValue value) {
  checkNew(name);
  type_->addConstant(name, std::move(value));
  return *this;
}

ModuleBuilder& ModuleBuilder::compile(const std::string& source, const std::string& file_name) {
  WICK_ASSERT(owner_ != nullptr, "the module has been built");
  compileInto(owner_->unit, source, file_name);
  return *this;
}

ModuleBuilder& ModuleBuilder::define(const std::string& source, const std::string& file_name) {
  std::vector<Def> methods;
  for (const Stmt& statement : Parser(source, file_name).parseModule()) {
    if (statement.kind() != TK_DEF) {
      throwCompileError(statement.range(), "expected a method; see ModuleBuilder::compile");
    }
    methods.push_back(Def(statement.tree()));
    checkNew(methods.back().name().name());
  }
  defineMethods(*owner_->unit, type_->name(), methods, nativeResolver(owner_->unit, kPrefix),
                selfFor(type_));
  return *this;
}

ModuleBuilder& ModuleBuilder::defineCall(const std::string& name, GraphFunction& function) {
  checkNew(name);
  const FunctionSchema& schema = function.schema();
  auto graph = std::make_shared<Graph>();
  std::vector<Argument> arguments(1);
  arguments[0].name = "self";
  arguments[0].type = type_;
  graph->addInput("self", type_);
  std::vector<Value*> inputs;
  for (const Argument& argument : schema.arguments()) {
    inputs.push_back(graph->addInput(argument.name, argument.type));
    arguments.push_back(argument);
  }
  graph->registerOutput(graph->insertCall(&function, inputs));
  GraphFunction* method = owner_->unit->createFunction(type_->name() + "." + name, graph);
  method->setSchema(FunctionSchema(name, "", std::move(arguments), schema.returns()));
  type_->addMethod(method);
  return *this;
}

ModuleBuilder& ModuleBuilder::defineGraph(const std::string& name, std::vector<Argument> arguments,
                                          TypePtr result,
                                          std::function<void(GraphFunction&)> make) {
  checkNew(name);
  Argument self;
  self.name = "self";
  self.type = type_;
  arguments.insert(arguments.begin(), std::move(self));
  Argument returned;
  returned.type = std::move(result);
  GraphFunction* method =
      owner_->unit->createFunction(type_->name() + "." + name, nullptr, std::move(make));
  method->setSchema(FunctionSchema(name, "", std::move(arguments), {std::move(returned)}));
  type_->addMethod(method);
  return *this;
}

void ModuleBuilder::keep(std::shared_ptr<void> owner) {
  if (owner) owner_->others.push_back(std::move(owner));
}

Module ModuleBuilder::build(CompileErrors* errors) {
  WICK_ASSERT(owner_ != nullptr, "the module has been built");
  CompileErrors own;
  compileFunctions(*owner_->unit, 0, errors ? *errors : own);
  own.throwIfAny();
  // The unit as its user knows it, together with the others.
  auto unit = std::shared_ptr<CompilationUnit>(owner_, owner_->unit.get());
  auto object = makeRef<Object>(type_, std::move(unit));
  for (size_t i = 0; i < values_.size(); ++i) object->setSlot(i, std::move(values_[i]));
  owner_.reset();
  return Module(std::move(object));
}

}  // namespace wick
