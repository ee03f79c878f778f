#include "frontend/resolver.h"

namespace wick {

namespace {

class NativeResolver : public Resolver {
 public:
  NativeResolver(const std::shared_ptr<CompilationUnit>& unit, std::string prefix)
      : unit_(unit), prefix_(std::move(prefix)) {}

  SugaredValuePtr resolveValue(const std::string& name, GraphFunction&,
                               const SourceRange&) override {
    if (SugaredValuePtr found = lookup(prefix_ + name)) return found;
    if (name == "__torch__") {
      // The resolver may not outlive the unit, whose functions hold it.
      return std::make_shared<NamespaceValue>(
          name, [this](const std::string& qualified) { return lookup(qualified); });
    }
    return nullptr;
  }

  TypePtr resolveType(const std::string& name, const SourceRange&) override {
    std::shared_ptr<CompilationUnit> unit = unit_.lock();
    if (!unit) return nullptr;
    if (TypePtr type = unit->findType(prefix_ + name)) return type;
    return name.starts_with("__torch__.") ? unit->findType(name) : nullptr;
  }

  std::set<std::string> knownNames() const override {
    std::set<std::string> names;
    std::shared_ptr<CompilationUnit> unit = unit_.lock();
    if (!unit) return names;
    auto add = [&](const std::string& qualified) {
      // Methods have their class in between.
      if (qualified.starts_with(prefix_) &&
          qualified.find('.', prefix_.size()) == std::string::npos) {
        names.insert(qualified.substr(prefix_.size()));
      }
    };
    for (const auto& function : unit->functions()) add(function->qualifiedName());
    for (const auto& [name, type] : unit->types()) add(name);
    return names;
  }

  std::set<std::string> functionsOf(const std::string& class_name) const override {
    std::set<std::string> names;
    std::shared_ptr<CompilationUnit> unit = unit_.lock();
    if (!unit) return names;
    const std::string prefix = class_name + ".";
    for (const auto& function : unit->functions()) {
      if (function->qualifiedName().starts_with(prefix)) names.insert(function->name());
    }
    return names;
  }

 private:
  SugaredValuePtr lookup(const std::string& qualified) const {
    std::shared_ptr<CompilationUnit> unit = unit_.lock();
    if (!unit) return nullptr;
    if (TypePtr type = unit->findType(qualified)) return sugaredType(type);
    if (GraphFunction* function = unit->findFunction(qualified)) {
      return std::make_shared<FunctionValue>(function);
    }
    return nullptr;
  }

  // The unit owns functions whose definers own this resolver.
  std::weak_ptr<CompilationUnit> unit_;
  std::string prefix_;
};

}  // namespace

ResolverPtr nativeResolver(std::shared_ptr<CompilationUnit> unit, std::string prefix) {
  return std::make_shared<NativeResolver>(unit, std::move(prefix));
}

SugaredValuePtr sugaredType(const TypePtr& type) {
  if (const auto* object = type->as<ClassType>()) {
    return std::make_shared<ClassValue>(object->shared());
  }
  if (type->kind() == TypeKind::Tuple) {
    auto tuple = std::static_pointer_cast<const TupleType>(type);
    if (tuple->isNamed()) return std::make_shared<NamedTupleConstructor>(std::move(tuple));
  }
  if (type->kind() == TypeKind::Enum) {
    return std::make_shared<EnumClassValue>(std::static_pointer_cast<const EnumType>(type));
  }
  return nullptr;
}

SugaredValuePtr NamespaceValue::attr(const SourceRange&, GraphFunction&, const std::string& field) {
  std::string longer = name_ + "." + field;
  if (SugaredValuePtr found = lookup_(longer)) return found;
  return std::make_shared<NamespaceValue>(std::move(longer), lookup_);
}

}  // namespace wick
