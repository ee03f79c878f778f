#include "serialization/source_import.h"

#include <charconv>
#include <optional>
#include <utility>

#include "core/conform.h"
#include "core/error.h"
#include "core/function_schema.h"
#include "core/keyed_hash.h"
#include "core/native_class.h"
#include "frontend/compile.h"
#include "frontend/parser.h"
#include "frontend/type_resolver.h"
#include "serialization/archive_names.h"
#include "serialization/constant_expr.h"

namespace wick {
namespace {

// Classes that name classes that name classes…; models nest some dozens deep.
constexpr size_t kMaxClassDepth = 400;

std::string moduleOf(const std::string& qualified_name) {
  const size_t dot = qualified_name.rfind('.');
  return dot == std::string::npos ? std::string() : qualified_name.substr(0, dot);
}

std::string lastPart(const std::string& qualified_name) {
  return qualified_name.substr(qualified_name.rfind('.') + 1);
}

// The strings of `__parameters__ = ["weight", ]`.
std::vector<std::string> stringList(const Expr& expr) {
  std::vector<std::string> result;
  auto add = [&](const List<Expr>& elements) {
    for (const Expr& e : elements) {
      if (e.kind() != TK_STRINGLITERAL) throwCompileError(e.range(), "expected a string");
      result.push_back(StringLiteral(e.tree()).text());
    }
  };
  if (expr.kind() == TK_LIST_LITERAL) {
    add(ListLiteral(expr.tree()).inputs());
  } else if (expr.kind() == TK_TUPLE_LITERAL) {
    add(TupleLiteral(expr.tree()).inputs());
  } else {
    throwCompileError(expr.range(), "expected a list of strings");
  }
  return result;
}

// T of Final[T].
std::optional<Expr> finalType(const Expr& expr) {
  if (expr.kind() != TK_SUBSCRIPT) return std::nullopt;
  Subscript subscript(expr.tree());
  if (subscript.value().kind() != TK_VAR || subscript.subscripts().size() != 1 ||
      Var(subscript.value().tree()).name().name() != "Final") {
    return std::nullopt;
  }
  return subscript.subscripts()[0];
}

// What the body of a class says, before any of it is compiled.
struct ClassBody {
  struct Constant {
    std::string name;
    Expr type;
    Expr value;
  };
  std::vector<std::pair<std::string, Expr>> attributes;
  std::vector<Constant> constants;
  KeyedSet<std::string> parameters;
  KeyedSet<std::string> buffers;
  std::vector<std::string> pre_hooks;
  std::vector<std::string> hooks;
  std::vector<Def> methods;

  explicit ClassBody(const ClassDef& definition) {
    for (const Stmt& statement : definition.body()) {
      switch (statement.kind()) {
        case TK_ASSIGN:
          readAssign(Assign(statement.tree()));
          break;
        case TK_DEF:
          methods.push_back(Def(statement.tree()));
          break;
        case TK_PASS:
          break;
        default:
          throwCompileError(statement.range(), "unexpected statement in a class body");
      }
    }
  }

 private:
  void readAssign(const Assign& assign) {
    const Expr target = assign.target();
    if (target.kind() == TK_SUBSCRIPT) return readAnnotation(assign, Subscript(target.tree()));
    if (target.kind() != TK_VAR) throwCompileError(target.range(), "expected a name");
    const std::string name = Var(target.tree()).name().name();
    if (assign.type()) {
      if (auto type = finalType(assign.type().get())) {
        if (!assign.value()) throwCompileError(assign.range(), "constant '{}' has no value", name);
        constants.push_back({name, *type, assign.value().get()});
      } else {
        attributes.emplace_back(name, assign.type().get());
      }
      return;
    }
    std::vector<std::string> names = stringList(assign.value().get());
    if (name == "__parameters__") {
      parameters.insert(names.begin(), names.end());
    } else if (name == "__buffers__") {
      buffers.insert(names.begin(), names.end());
    } else if (name == "__forward_pre_hooks__") {
      pre_hooks = std::move(names);
    } else if (name == "__forward_hooks__") {
      hooks = std::move(names);
    } else if (name != "__annotations__") {
      throwCompileError(assign.range(), "unexpected class variable '{}'", name);
    }
  }

  // __annotations__["0"] = T, for names that are not identifiers.
  void readAnnotation(const Assign& assign, const Subscript& target) {
    if (target.value().kind() != TK_VAR || target.subscripts().size() != 1 ||
        Var(target.value().tree()).name().name() != "__annotations__" ||
        target.subscripts()[0].kind() != TK_STRINGLITERAL || !assign.value()) {
      throwCompileError(assign.range(), "expected __annotations__[\"name\"] = type");
    }
    const std::string& name = StringLiteral(target.subscripts()[0].tree()).text();
    const Expr type = assign.value().get();
    if (auto constant = finalType(type)) {
      throwCompileError(assign.range(), "constant '{}' has no value", name);
    }
    attributes.emplace_back(name, type);
  }
};

class SchemaOnlyFunction : public Function {
 public:
  SchemaOnlyFunction(std::string qualified_name, FunctionSchema schema)
      : name_(std::move(qualified_name)), schema_(std::move(schema)) {}
  const std::string& qualifiedName() const override { return name_; }
  const FunctionSchema& schema() override { return schema_; }
  void ensureDefined() override {}

 private:
  std::string name_;
  FunctionSchema schema_;
};

class DepthGuard {
 public:
  DepthGuard(size_t& depth, const SourceRange& range) : depth_(depth) {
    if (depth_ >= kMaxClassDepth) {
      throwCompileError(range, "classes refer to each other more than {} deep", kMaxClassDepth);
    }
    ++depth_;
  }
  ~DepthGuard() { --depth_; }
  DepthGuard(const DepthGuard&) = delete;

 private:
  size_t& depth_;
};

}  // namespace

SourceImporter::SourceImporter(CompilationUnit& unit, SourceLoader loader, int64_t version)
    : unit_(unit), loader_(std::move(loader)), version_(version) {}

std::shared_ptr<SourceImporter> SourceImporter::create(CompilationUnit& unit, SourceLoader loader,
                                                       int64_t version) {
  return std::shared_ptr<SourceImporter>(new SourceImporter(unit, std::move(loader), version));
}

void SourceImporter::parseModule(const std::string& module) {
  if (module.empty() || !parsed_modules_.insert(module).second) return;
  std::shared_ptr<const Source> source = loader_(module);
  if (source == nullptr) return;
  const List<Stmt> statements = Parser(source).parseModule();
  for (const Stmt& statement : statements) {
    std::string name;
    switch (statement.kind()) {
      case TK_CLASS_DEF:
        name = ClassDef(statement.tree()).name().name();
        break;
      case TK_DEF:
        name = Def(statement.tree()).name().name();
        break;
      // `op_version_set = 1` and imports stand at the top of the oldest archives; what they tell
      // is known without them.
      case TK_ASSIGN:
      case TK_IMPORT:
        continue;
      default:
        throwCompileError(statement.range(), "unexpected statement at the top of a module");
    }
    if (!pending_.emplace(module + "." + name, statement.tree()).second) {
      throwCompileError(statement.range(), "'{}' is defined twice", name);
    }
  }
}

TypePtr SourceImporter::findType(const std::string& qualified_name) {
  if (TypePtr known = unit_.findType(qualified_name)) return known;
  if (TypePtr handle = findNativeClass(qualified_name)) return handle;
  parseModule(moduleOf(qualified_name));
  auto it = pending_.find(qualified_name);
  if (it == pending_.end() || it->second->kind() != TK_CLASS_DEF) return nullptr;
  ClassDef definition(it->second);
  pending_.erase(it);
  if (++classes_ > max_classes_) {
    throwCompileError(definition.range(), "the archive has more than {} classes", max_classes_);
  }
  DepthGuard guard(depth_, definition.range());
  return importClassDef(qualified_name, definition);
}

GraphFunction* SourceImporter::findFunction(const std::string& qualified_name) {
  if (GraphFunction* known = unit_.findFunction(qualified_name)) return known;
  const std::string module = moduleOf(qualified_name);
  parseModule(module);
  auto it = pending_.find(qualified_name);
  if (it == pending_.end() || it->second->kind() != TK_DEF) return nullptr;
  Def definition(it->second);
  pending_.erase(it);
  return defineFunctions(unit_, module, {definition}, shared_from_this()).at(0);
}

void SourceImporter::compileAll(CompileErrors* errors) {
  CompileErrors own;
  compileFunctions(unit_, 0, errors ? *errors : own);
  own.throwIfAny();
}

TypePtr SourceImporter::parseType(const std::string& text) {
  return typeOf(Parser(text, "<type>").parseExpression());
}

TypePtr SourceImporter::typeOf(const Expr& expr) {
  return TypeResolver(shared_from_this()).typeOf(expr);
}

IValue SourceImporter::constantOf(const Expr& expr, const TypePtr& type) {
  ConstantScope scope;
  scope.constant = [this](const SourceRange& range, const std::string& name) {
    return constant(range, name);
  };
  scope.type = [this](const Expr& e) { return typeOf(e); };
  scope.device = [this](const std::string& name) { return device(name); };
  IValue value = evaluateConstant(expr, scope);
  try {
    return conform(std::move(value), type, Conversions::Python);
  } catch (const RuntimeError& error) {
    throwCompileError(expr.range(), "{}", error.brief());
  }
}

const IValue& SourceImporter::constant(const SourceRange& range, const std::string& name) const {
  size_t index = 0;
  auto [end, error] = std::from_chars(name.data() + 1, name.data() + name.size(), index);
  if (name.size() < 2 || name[0] != 'c' || error != std::errc() ||
      end != name.data() + name.size() || index >= constants_.size()) {
    throwCompileError(range, "there is no constant '{}'; the archive has {}", name,
                      constants_.size());
  }
  return constants_[index];
}

std::optional<Device> SourceImporter::device(const std::string& name) const {
  return devices_ ? devices_->find(name) : deviceNamed(name);
}

TypePtr SourceImporter::importClassDef(const std::string& qualified_name,
                                       const ClassDef& definition) {
  const List<Expr> bases = definition.bases();
  if (bases.empty()) return importClass(qualified_name, definition, false);
  if (bases.size() == 1 && bases[0].kind() == TK_VAR) {
    const std::string& base = Var(bases[0].tree()).name().name();
    if (base == "Module") return importClass(qualified_name, definition, true);
    if (base == "NamedTuple") return importNamedTuple(qualified_name, definition);
    if (base == "Enum") return importEnum(qualified_name, definition);
    if (base == "Interface") return importInterface(qualified_name, definition, false);
    if (base == "ModuleInterface") return importInterface(qualified_name, definition, true);
  }
  throwCompileError(bases[0].range(),
                    "expected Module, NamedTuple, Enum, Interface or ModuleInterface as base");
}

TypePtr SourceImporter::importClass(const std::string& qualified_name, const ClassDef& definition,
                                    bool is_module) {
  const ClassBody body(definition);
  // Registered before its attributes are known, because they may be of this very type.
  auto type = std::make_shared<ClassType>(qualified_name, is_module);
  unit_.registerType(qualified_name, type);
  for (const auto& [name, expr] : body.attributes) {
    if (type->findAttribute(name)) {
      throwCompileError(expr.range(), "attribute '{}' is declared twice", name);
    }
    type->addAttribute(name, typeOf(expr), body.parameters.contains(name),
                       body.buffers.contains(name));
  }
  for (const ClassBody::Constant& c : body.constants) {
    if (type->findAttribute(c.name) || type->findConstant(c.name) != nullptr) {
      throwCompileError(c.value.range(), "constant '{}' is declared twice", c.name);
    }
    type->addConstant(c.name, constantOf(c.value, typeOf(c.type)));
  }
  // Hooks run around forward; a program calls them as functions, never as methods.
  KeyedSet<std::string> hook_names(body.pre_hooks.begin(), body.pre_hooks.end());
  hook_names.insert(body.hooks.begin(), body.hooks.end());
  std::vector<Def> methods, hooks;
  for (const Def& def : body.methods) {
    (hook_names.contains(def.name().name()) ? hooks : methods).push_back(def);
  }
  std::shared_ptr<const Self> self = selfFor(type);
  defineMethods(unit_, qualified_name, methods, shared_from_this(), self);
  defineFunctions(unit_, qualified_name, hooks, shared_from_this(), self);
  auto hookNamed = [&](const std::string& name) {
    GraphFunction* hook = unit_.findFunction(qualified_name + "." + name);
    if (hook == nullptr) throwCompileError(definition.range(), "hook '{}' is not defined", name);
    return hook;
  };
  for (const std::string& name : body.pre_hooks) type->addForwardPreHook(hookNamed(name));
  for (const std::string& name : body.hooks) type->addForwardHook(hookNamed(name));
  return type;
}

TypePtr SourceImporter::importNamedTuple(const std::string& qualified_name,
                                         const ClassDef& definition) {
  std::vector<std::string> fields;
  std::vector<TypePtr> types;
  std::vector<IValue> defaults;
  for (const Stmt& statement : definition.body()) {
    if (statement.kind() == TK_PASS) continue;
    if (statement.kind() != TK_ASSIGN) throwCompileError(statement.range(), "expected a field");
    Assign assign(statement.tree());
    if (assign.target().kind() != TK_VAR || !assign.type()) {
      throwCompileError(statement.range(), "expected a field with a type");
    }
    fields.push_back(Var(assign.target().tree()).name().name());
    types.push_back(typeOf(assign.type().get()));
    if (assign.value()) {
      defaults.push_back(constantOf(assign.value().get(), types.back()));
    } else if (!defaults.empty()) {
      throwCompileError(statement.range(), "a field without a default follows one with a default");
    }
  }
  auto type = std::make_shared<TupleType>(qualified_name, std::move(fields), std::move(types),
                                          std::move(defaults));
  unit_.registerType(qualified_name, type);
  return type;
}

TypePtr SourceImporter::importEnum(const std::string& qualified_name, const ClassDef& definition) {
  std::vector<std::pair<std::string, IValue>> members;
  TypePtr value_type;
  for (const Stmt& statement : definition.body()) {
    if (statement.kind() != TK_ASSIGN) throwCompileError(statement.range(), "expected a member");
    Assign assign(statement.tree());
    if (assign.target().kind() != TK_VAR || !assign.value()) {
      throwCompileError(statement.range(), "expected a member with a value");
    }
    IValue value = constantOf(assign.value().get(), types::Any());
    TypePtr type = value.type();
    if (value_type != nullptr && !sameType(value_type, type)) {
      throwCompileError(statement.range(), "enum members are of types {} and {}",
                        value_type->annotation(), type->annotation());
    }
    value_type = std::move(type);
    members.emplace_back(Var(assign.target().tree()).name().name(), std::move(value));
  }
  if (members.empty()) throwCompileError(definition.range(), "an enum has no members");
  auto type = std::make_shared<EnumType>(qualified_name, value_type, std::move(members));
  unit_.registerType(qualified_name, type);
  return type;
}

TypePtr SourceImporter::importInterface(const std::string& qualified_name,
                                        const ClassDef& definition, bool is_module) {
  auto type = std::make_shared<InterfaceType>(qualified_name, is_module);
  unit_.registerType(qualified_name, type);
  for (const Stmt& statement : definition.body()) {
    if (statement.kind() == TK_PASS) continue;
    if (statement.kind() != TK_DEF) throwCompileError(statement.range(), "expected a method");
    Def method(statement.tree());
    const std::string name = qualified_name + "." + method.name().name();
    FunctionSchema declared = TypeResolver(shared_from_this()).schemaOf(method, true);
    if (method.decl().params().empty() || declared.returns().empty()) {
      throwCompileError(method.range(), "expected a method with self and a return type");
    }
    std::vector<Argument> arguments = declared.arguments();
    arguments[0].type = type;
    type->addMethod(std::make_shared<SchemaOnlyFunction>(
        name, FunctionSchema(lastPart(name), "", std::move(arguments), declared.returns())));
  }
  return type;
}

SugaredValuePtr SourceImporter::resolveValue(const std::string& name, GraphFunction& fn,
                                             const SourceRange& range) {
  return archiveName(name, fn, range, *this);
}

TypePtr SourceImporter::resolveType(const std::string& name, const SourceRange&) {
  return findType(name);
}

}  // namespace wick
