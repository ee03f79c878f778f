// Functions and constants that are trees until they are used: lambdas, nested functions, generic
// functions, constants of a file.
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

// A constant of a file: the expression stands where the name is used.
class GlobalConstant : public SugaredValue {
 public:
  GlobalConstant(std::string name, Expr value, ResolverPtr resolver, bool* being_compiled)
      : name_(std::move(name)),
        value_(std::move(value)),
        resolver_(std::move(resolver)),
        being_compiled_(being_compiled) {}
  std::string kind() const override { return "constant '" + name_ + "' of the file"; }
  const std::string& name() const { return name_; }
  const Expr& value() const { return value_; }
  const ResolverPtr& resolver() const { return resolver_; }
  // Guards against a constant that needs itself.
  bool& beingCompiled() const { return *being_compiled_; }

 private:
  std::string name_;
  Expr value_;
  ResolverPtr resolver_;
  bool* being_compiled_;
};

// Whether a parameter takes a function: annotated Callable or Callable[…]. Such a function is
// generic.
bool isCallableType(const Expr& type);
bool isGenericFunction(const Def& def);

// What a file declares besides its functions and classes: constants, type aliases, generic
// functions. Everything else is asked of `base`.
class FileScope : public Resolver, public std::enable_shared_from_this<FileScope> {
 public:
  explicit FileScope(ResolverPtr base) : base_(std::move(base)) {}
  // CompileError for what is not constant.
  void addConstant(const std::string& name, const Expr& value);
  void addGeneric(const Def& def);
  SugaredValuePtr resolveValue(const std::string& name, GraphFunction& fn,
                               const SourceRange& range) override;
  TypePtr resolveType(const std::string& name, const SourceRange& range) override;

 private:
  struct Constant {
    Expr value;
    bool being_compiled = false;
  };
  ResolverPtr base_;
  std::map<std::string, Constant> constants_;
  std::map<std::string, Def> generics_;
};

}  // namespace wick
