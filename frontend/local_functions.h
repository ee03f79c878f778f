// Functions that are trees until they are called: lambdas, nested functions, generic functions.
//
// A local function has no code of its own: each call compiles its body again, in place, for the
// arguments it has there. So its parameters need no types and may be functions themselves, and it
// reads the variables around it as they are at the call.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "frontend/resolver.h"
#include "frontend/tree_views.h"

namespace wick {

class Emitter;
class Environment;

class LocalFunction : public SugaredValue {
 public:
  // `tree` is a Def or a Lambda. `home` is the scope where it was defined; none for a generic
  // function of a file.
  LocalFunction(std::string name, TreeRef tree, ResolverPtr resolver, const Environment* home)
      : name_(std::move(name)),
        tree_(std::move(tree)),
        resolver_(std::move(resolver)),
        home_(home) {}
  std::string kind() const override { return "function '" + name_ + "'"; }
  Value* asValue(const SourceRange& range, GraphFunction& fn) override;
  // Works while the function in which it was defined is being compiled.
  SugaredValuePtr call(const SourceRange&, GraphFunction&, std::vector<NamedValue>,
                       std::vector<NamedValue>, size_t) override;

  const std::string& name() const { return name_; }
  const TreeRef& tree() const { return tree_; }
  Decl decl() const;
  const ResolverPtr& resolver() const { return resolver_; }
  const Environment* home() const { return home_; }

 private:
  friend class Emitter;
  std::string name_;
  TreeRef tree_;
  ResolverPtr resolver_;
  const Environment* home_;
  Emitter* emitter_ = nullptr;
  // Variables that hold the values of the defaults, by parameter; "" for none.
  std::vector<std::string> defaults_;
  bool being_compiled_ = false;
  bool was_called_ = false;
};

// Whether a parameter takes a function: annotated Callable or Callable[…]. Such a function is
// generic.
bool isCallableType(const Expr& type);
bool isGenericFunction(const Def& def);

// The generic functions of a file; every other name is asked of `base`.
class GenericScope : public Resolver, public std::enable_shared_from_this<GenericScope> {
 public:
  explicit GenericScope(ResolverPtr base) : base_(std::move(base)) {}
  // CompileError for a name that has been added already.
  void add(const Def& def);
  SugaredValuePtr resolveValue(const std::string& name, GraphFunction& fn,
                               const SourceRange& range) override;
  TypePtr resolveType(const std::string& name, const SourceRange& range) override {
    return base_->resolveType(name, range);
  }
  void checkBroken(const std::string& name) const override { base_->checkBroken(name); }
  std::set<std::string> functionsOf(const std::string& class_name) const override {
    return base_->functionsOf(class_name);
  }
  std::set<std::string> knownNames() const override {
    std::set<std::string> names = base_->knownNames();
    for (const auto& [name, def] : functions_) names.insert(name);
    return names;
  }

 private:
  ResolverPtr base_;
  std::map<std::string, Def> functions_;
};

}  // namespace wick
