// How a function being compiled finds names that it does not define itself.
#pragma once

#include <memory>
#include <string>

#include "frontend/sugared_value.h"

namespace wick {

class Resolver {
 public:
  virtual ~Resolver() = default;
  // Null when unknown.
  virtual SugaredValuePtr resolveValue(const std::string& name, GraphFunction& fn,
                                       const SourceRange& range) = 0;
  // Named types: classes, NamedTuples, enums, interfaces. Null when unknown.
  virtual TypePtr resolveType(const std::string& name, const SourceRange& range) = 0;
};
using ResolverPtr = std::shared_ptr<Resolver>;

// Python's and torch's builtins: `torch`, `math`, `len`, `range`, `int`, … Functions and types of
// `unit` under `prefix` ("__torch__.") come first.
ResolverPtr nativeResolver(std::shared_ptr<CompilationUnit> unit,
                           std::string prefix = "__torch__.");

}  // namespace wick
