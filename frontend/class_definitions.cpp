// Classes, NamedTuples, enums and interfaces from their trees.
#include "frontend/class_definitions.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "core/suggestions.h"
#include "core/wrapped.h"
#include "frontend/compile.h"
#include "frontend/decorators.h"
#include "frontend/type_resolver.h"

namespace wick {

Function* findMethodOf(const TypePtr& type, const std::string& name) {
  if (const auto* object = type->as<ClassType>()) return object->findMethod(name);
  if (const auto* interface = type->as<InterfaceType>()) return interface->findMethod(name);
  return nullptr;
}

void ensureInitialized(const ClassType& type) {
  auto* init = dynamic_cast<GraphFunction*>(type.findMethod("__init__"));
  if (init && !init->isDefined() && !init->isBeingDefined()) init->ensureDefined();
}

namespace {

// A line that could not be read becomes a method of this name, followed by that of the member if it
// is known, and defining it throws.
constexpr std::string_view kUnreadable = "<unreadable>";

}  // namespace

void checkUnreadable(const ClassType& type, const std::string& member) {
  for (Function* method : type.methods()) {
    if (!isUnreadable(*method)) continue;
    const std::string name = method->name().substr(kUnreadable.size());
    // What should have ended the name may be what is missing. An initializer makes attributes.
    if (name.empty() || name.starts_with(member) || name.starts_with("__init__")) {
      method->ensureDefined();
    }
  }
}

MissingMember::MissingMember(const SourceRange& range, std::string message, std::string member,
                             ClassTypePtr type, std::set<std::string> known)
    : CompileError(range, message + didYouMean(member, known)),
      message_(std::move(message)),
      member_(std::move(member)),
      type_(std::move(type)),
      known_(std::move(known)) {}

CompileError MissingMember::among(const std::set<std::string>& functions) const {
  std::set<std::string> known = known_;
  for (const std::string& name : functions) {
    if (type_->findStaticMethod(name)) known.insert(name);
  }
  return CompileError(range(), message_ + didYouMean(member_, known));
}

bool isUnreadable(const Function& method) {
  return method.name().starts_with(kUnreadable);
}

namespace {

class ClassSelf : public Self {
 public:
  explicit ClassSelf(ClassTypePtr type) : type_(std::move(type)) {}
  SugaredValuePtr makeSugared(Value* self) const override {
    return std::make_shared<SimpleValue>(self);
  }
  ClassTypePtr classType() const override { return type_; }

 private:
  ClassTypePtr type_;
};

// What says nothing of a definition. CompileError for what could not be read.
bool isDocstring(const Stmt& stmt) {
  if (stmt.kind() == TK_BROKEN) Broken(stmt.tree()).raise();
  if (stmt.kind() == TK_PASS) return true;
  if (stmt.kind() != TK_EXPR_STMT) return false;
  int kind = ExprStmt(stmt.tree()).expr().kind();
  return kind == TK_STRINGLITERAL || kind == TK_DOTS;
}

// Methods of a NamedTuple or an enum stay in Python: a program cannot call them, nor can it in
// PyTorch.
bool isMethodOfPython(const Stmt& stmt) {
  return stmt.kind() == TK_DEF;
}

// enum.auto()
bool isAuto(const Expr& value) {
  if (value.kind() != TK_APPLY) return false;
  const Apply call(value.tree());
  return lastName(call.callee()) == "auto" && call.inputs().empty();
}

// What it stands for: one more than the value before, which is None at first.
IValue nextValue(const SourceRange& range, const IValue& before) {
  if (before.isNone()) return IValue(int64_t{1});
  if (!before.isInt()) throwCompileError(range, "auto() follows an int");
  return IValue(wrappedSum<int64_t>(before.toInt(), 1));
}

// The strings of `__parameters__ = ["a", "b"]`.
std::set<std::string> stringSet(const Expr& expr) {
  std::set<std::string> out;
  if (expr.kind() != TK_LIST_LITERAL) {
    throwCompileError(expr.range(), "expected a list of names");
  }
  for (const Expr& e : ListLiteral(expr.tree()).inputs()) {
    if (e.kind() != TK_STRINGLITERAL) throwCompileError(e.range(), "expected a name as a string");
    out.insert(StringLiteral(e.tree()).text());
  }
  return out;
}

class ClassBuilder {
 public:
  ClassBuilder(CompilationUnit& unit, std::string name, const ClassDef& definition,
               ResolverPtr resolver, bool is_module, CompileErrors* errors)
      : unit_(unit),
        name_(std::move(name)),
        definition_(definition),
        resolver_(std::move(resolver)),
        types_(resolver_),
        is_module_(is_module),
        errors_(errors) {}

  TypePtr build() {
    for (const Expr& base : definition_.bases()) {
      std::string last = lastName(base);
      if (last == "NamedTuple") return namedTuple();
      if (last == "Enum" || last == "IntEnum") return enumeration();
      if (last == "Interface" || last == "ModuleInterface") return interface(last != "Interface");
      if (last == "Module" || last == "ScriptModule") {
        is_module_ = true;
      } else if (last != "object" && last != "Object") {
        resolver_->checkBroken(last);
        throwCompileError(
            base.range(),
            "Torchscript does not support class inheritance: '{}' is not a base class "
            "that it knows",
            last);
      }
    }
    for (const Expr& decorator : definition_.decorators()) {
      if (lastName(decorator) == "interface") return interface(is_module_);
    }
    return object();
  }

 private:
  TypePtr object() {
    auto type = std::make_shared<ClassType>(name_, is_module_);
    // Known by name before the body is read, because members may refer to the class.
    unit_.registerType(name_, type);
    std::vector<Def> methods;
    for (const Stmt& stmt : definition_.body()) {
      try {
        line(*type, stmt, methods);
      } catch (const CompileError& error) {
        skip(*type, stmt, error);
      }
    }
    for (const auto& [attribute, attribute_type] : annotations_) {
      type->addAttribute(attribute, attribute_type, parameters_.count(attribute) != 0,
                         buffers_.count(attribute) != 0);
    }
    defineMethods(type, methods);
    return type;
  }

  void line(ClassType& type, const Stmt& stmt, std::vector<Def>& methods) {
    switch (stmt.kind()) {
      case TK_DEF:
        methods.emplace_back(stmt.tree());
        break;
      case TK_ASSIGN:
        member(type, Assign(stmt.tree()));
        break;
      default:
        if (isDocstring(stmt)) break;
        throwCompileError(stmt.range(),
                          "a class body holds methods, attribute declarations and constants");
    }
  }

  // Goes on after an error, so that the other members are checked.
  void skip(ClassType& type, const Stmt& stmt, const CompileError& error) {
    if (!errors_) throw error;
    errors_->add(error);
    std::vector<std::string> names;
    if (stmt.kind() == TK_BROKEN) {
      for (const Ident& name : Broken(stmt.tree()).names()) names.push_back(name.name());
    } else if (stmt.kind() == TK_DEF) {
      names.push_back(Def(stmt.tree()).name().name());
    } else if (stmt.kind() == TK_ASSIGN) {
      const Expr target = Assign(stmt.tree()).target();
      if (target.kind() == TK_VAR) names.push_back(Var(target.tree()).name().name());
    }
    if (names.empty()) names.emplace_back();
    for (const std::string& name : names) {
      const std::string qualified = name_ + "." + std::string(kUnreadable) + name;
      if (unit_.findFunction(qualified)) continue;
      type.addMethod(unit_.createFunction(qualified, nullptr,
                                          [error](GraphFunction&) { throw CompileError(error); }));
    }
  }

  // x: T, x: Final[T] = value, x = value, __parameters__ = […], __annotations__["0"] = T
  void member(ClassType& type, const Assign& stmt) {
    Expr target = stmt.target();
    if (target.kind() == TK_SUBSCRIPT) return quotedAnnotation(Subscript(target.tree()), stmt);
    if (target.kind() != TK_VAR || stmt.targets().size() != 1) {
      throwCompileError(stmt.range(), "a class body declares attributes by their names");
    }
    const std::string& name = Var(target.tree()).name().name();
    if (!stmt.type()) {
      if (!stmt.value()) throwCompileError(stmt.range(), "an attribute needs a type or a value");
      if (name == "__parameters__") {
        parameters_ = stringSet(stmt.value().get());
      } else if (name == "__buffers__") {
        buffers_ = stringSet(stmt.value().get());
      } else if (name == "__jit_unused_properties__") {
        unused_properties_ = stringSet(stmt.value().get());
      } else if (name == "__annotations__" || name == "__constants__" || name == "__slots__" ||
                 name == "__overloads__") {
        return;
      } else {
        type.addConstant(name, types_.constantOfType(stmt.value().get(), types::Any()));
      }
      return;
    }
    Expr annotation = stmt.type().get();
    TypePtr declared = types_.typeOf(annotation);
    if (!stmt.value()) {
      annotations_.emplace_back(name, std::move(declared));
      return;
    }
    type.addConstant(name, types_.constantOfType(stmt.value().get(), declared));
  }

  // Names that are not identifiers: __annotations__["0"] = __torch__.Block
  void quotedAnnotation(const Subscript& target, const Assign& stmt) {
    bool well_formed = lastName(target.value()) == "__annotations__" &&
                       target.subscripts().size() == 1 &&
                       target.subscripts()[0].kind() == TK_STRINGLITERAL && stmt.value();
    if (!well_formed) {
      throwCompileError(stmt.range(), "a class body declares attributes by their names");
    }
    annotations_.emplace_back(StringLiteral(target.subscripts()[0].tree()).text(),
                              types_.typeOf(stmt.value().get()));
  }

  void defineMethods(const ClassTypePtr& type, const std::vector<Def>& methods) {
    std::vector<Def> plain;
    std::vector<Def> statics;
    std::vector<std::pair<std::string, std::string>> setters;
    std::vector<std::string> getters;
    for (const Def& method : methods) {
      const Def def = hasDecorator(method, "unused") ? unusedFunction(method) : method;
      const std::string& name = def.name().name();
      if (unused_properties_.contains(name)) continue;
      if (hasDecorator(def, "staticmethod")) {
        statics.push_back(def);
      } else if (hasDecorator(def, "ignore")) {
        skip(*type, def,
             CompileError(def.range(),
                          fmt::format("the method '{}' is marked as not scriptable", name)));
      } else if (hasDecorator(def, "property") || hasDecorator(def, "getter")) {
        getters.push_back(name);
        plain.push_back(def.withName(name + "_getter"));
      } else if (hasDecorator(def, "deleter")) {
        // Nothing of a program's object can be deleted.
      } else if (hasDecorator(def, "setter")) {
        setters.emplace_back(name, name + "_setter");
        plain.push_back(def.withName(name + "_setter"));
      } else {
        plain.push_back(def);
      }
    }
    auto self = std::make_shared<ClassSelf>(type);
    const auto defined = [&](const Def& def, auto define) {
      try {
        define(std::vector<Def>{def});
      } catch (const CompileError& error) {
        skip(*type, def, error);
      }
    };
    for (const Def& def : plain) {
      defined(def,
              [&](const auto& one) { wick::defineMethods(unit_, name_, one, resolver_, self); });
    }
    for (const Def& def : statics) {
      defined(def, [&](const auto& one) {
        type->addStaticMethod(defineFunctions(unit_, name_, one, resolver_).at(0));
      });
    }
    for (const std::string& name : getters) {
      ClassType::Property property;
      property.name = name;
      property.getter = type->findMethod(name + "_getter");
      for (const auto& [of, setter] : setters) {
        if (of == name) property.setter = type->findMethod(setter);
      }
      type->addProperty(std::move(property));
    }
  }

  TypePtr namedTuple() {
    std::vector<std::string> fields;
    std::vector<TypePtr> field_types;
    std::vector<IValue> defaults;
    for (const Stmt& stmt : definition_.body()) {
      if (isDocstring(stmt) || isMethodOfPython(stmt)) continue;
      if (stmt.kind() != TK_ASSIGN) {
        throwCompileError(stmt.range(), "a NamedTuple holds only fields");
      }
      Assign field(stmt.tree());
      if (field.target().kind() == TK_SUBSCRIPT && field.value()) {
        quotedAnnotation(Subscript(field.target().tree()), field);
        fields.push_back(annotations_.back().first);
        field_types.push_back(annotations_.back().second);
        continue;
      }
      if (field.target().kind() != TK_VAR || !field.type()) {
        throwCompileError(stmt.range(), "a field of a NamedTuple needs a type: name: type");
      }
      fields.push_back(Var(field.target().tree()).name().name());
      field_types.push_back(types_.typeOf(field.type().get()));
      if (field.value()) {
        defaults.push_back(types_.constantOfType(field.value().get(), field_types.back()));
      } else if (!defaults.empty()) {
        throwCompileError(stmt.range(), "a field without a default follows one with a default");
      }
    }
    auto type = std::make_shared<const TupleType>(name_, std::move(fields), std::move(field_types),
                                                  std::move(defaults));
    unit_.registerType(name_, type);
    return type;
  }

  TypePtr enumeration() {
    std::vector<std::pair<std::string, IValue>> members;
    const DictRef seen(makeRef<DictObject>(types::Any(), types::None()));  // the values of members
    TypePtr value_type;
    IValue last;
    for (const Stmt& stmt : definition_.body()) {
      if (isDocstring(stmt) || isMethodOfPython(stmt)) continue;
      if (stmt.kind() != TK_ASSIGN) throwCompileError(stmt.range(), "an enum holds only members");
      Assign member(stmt.tree());
      if (member.target().kind() != TK_VAR || !member.value()) {
        throwCompileError(stmt.range(), "a member of an enum is written NAME = value");
      }
      IValue value = isAuto(member.value().get())
                         ? nextValue(stmt.range(), last)
                         : types_.constantOfType(member.value().get(), types::Any());
      TypePtr type = value.type();
      TypeKind kind = type->kind();
      if (kind != TypeKind::Int && kind != TypeKind::Float && kind != TypeKind::String) {
        throwCompileError(stmt.range(),
                          "Cannot create Enum with value type '{}', only int, float and string are "
                          "supported",
                          type->annotation());
      }
      if (value_type && !sameType(type, value_type)) {
        throwCompileError(stmt.range(), "the values of an enum must have one type, found {} and {}",
                          value_type->annotation(), type->annotation());
      }
      value_type = type;
      last = value;
      // A second name of a value is not a member of its own, as in PyTorch.
      if (seen->find(value)) continue;
      seen->set(value, IValue());
      members.emplace_back(Var(member.target().tree()).name().name(), std::move(value));
    }
    if (members.empty()) {
      throwCompileError(definition_.range(), "No enum values defined for class '{}'", name_);
    }
    auto type = std::make_shared<const EnumType>(name_, value_type, std::move(members));
    unit_.registerType(name_, type);
    return type;
  }

  TypePtr interface(bool is_module) {
    auto type = std::make_shared<InterfaceType>(name_, is_module);
    unit_.registerType(name_, type);
    for (const Stmt& stmt : definition_.body()) {
      if (isDocstring(stmt)) continue;
      if (stmt.kind() != TK_DEF) {
        throwCompileError(stmt.range(), "an interface holds only method declarations");
      }
      Def def(stmt.tree());
      if (def.decl().params().empty()) {
        throwCompileError(def.range(), "methods must have a self argument");
      }
      FunctionSchema declared = types_.schemaOf(def, /*skip_self=*/true);
      std::vector<Argument> arguments = declared.arguments();
      arguments.at(0).type = type;
      std::vector<Argument> returns = declared.returns();
      if (returns.empty()) {
        throwCompileError(def.range(), "interface declarations must have a return type annotated");
      }
      auto method = std::make_shared<GraphFunction>(name_ + "." + def.name().name(), nullptr);
      method->setSchema(
          FunctionSchema(def.name().name(), "", std::move(arguments), std::move(returns)));
      type->addMethod(std::move(method));
    }
    return type;
  }

  CompilationUnit& unit_;
  std::string name_;
  const ClassDef& definition_;
  ResolverPtr resolver_;
  TypeResolver types_;
  bool is_module_;
  CompileErrors* errors_;  // null: throw them
  std::vector<std::pair<std::string, TypePtr>> annotations_;
  std::set<std::string> parameters_;
  std::set<std::string> buffers_;
  std::set<std::string> unused_properties_;  // stay in Python
};

}  // namespace

std::unique_ptr<Self> selfFor(ClassTypePtr type) {
  return std::make_unique<ClassSelf>(std::move(type));
}

TypePtr defineClass(CompilationUnit& unit, const std::string& qualified_name,
                    const ClassDef& definition, const ResolverPtr& resolver, bool is_module,
                    CompileErrors* errors) {
  return ClassBuilder(unit, qualified_name, definition, resolver, is_module, errors).build();
}

}  // namespace wick
