// How a function being compiled finds names that it does not define itself.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "frontend/sugared_value.h"

namespace wick {

class Resolver {
 public:
  virtual ~Resolver() = default;
  // Null when unknown: then Python's and torch's builtins are tried (frontend/builtin_table.h).
  virtual SugaredValuePtr resolveValue(const std::string& name, GraphFunction& fn,
                                       const SourceRange& range) = 0;
  // Named types: classes, NamedTuples, enums, interfaces; `name` may be dotted. Null when unknown.
  virtual TypePtr resolveType(const std::string& name, const SourceRange& range) = 0;
  // What a reader may have meant by a name that is not known: functions and types of the program.
  virtual std::set<std::string> knownNames() const { return {}; }
  // The names of all functions that the body of a class defines, by its qualified name.
  virtual std::set<std::string> functionsOf(const std::string&) const { return {}; }
  // Throws when an unknown name may be that of a definition which could not be read: the error of
  // the definition.
  virtual void checkBroken(const std::string&) const {}
};
using ResolverPtr = std::shared_ptr<Resolver>;

// Functions and types of `unit` under `prefix` ("__torch__."); `__torch__.a.b` by its full name.
ResolverPtr nativeResolver(std::shared_ptr<CompilationUnit> unit,
                           std::string prefix = "__torch__.");

// What a named type stands for in an expression: a class, a NamedTuple's constructor, an enum.
// Null for other types.
SugaredValuePtr sugaredType(const TypePtr& type);

// `__torch__`, `__torch__.a`: the beginning of a qualified name. An attribute is whatever `lookup`
// finds under the longer name, else a longer beginning.
class NamespaceValue : public SugaredValue {
 public:
  using Lookup = std::function<SugaredValuePtr(const std::string& qualified_name)>;
  NamespaceValue(std::string name, Lookup lookup)
      : name_(std::move(name)), lookup_(std::move(lookup)) {}
  std::string kind() const override { return "namespace '" + name_ + "'"; }
  SugaredValuePtr attr(const SourceRange&, GraphFunction&, const std::string&) override;

 private:
  std::string name_;
  Lookup lookup_;
};

}  // namespace wick
