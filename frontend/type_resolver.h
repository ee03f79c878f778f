// Reads type expressions of the program ("Optional[List[Tensor]]", `torch.Tensor`, class names) and
// whole signatures, from annotations or type comments.
#pragma once

#include <optional>
#include <utility>

#include "core/function_schema.h"
#include "frontend/resolver.h"
#include "frontend/tree_views.h"

namespace wick {

class TypeResolver {
 public:
  explicit TypeResolver(ResolverPtr resolver = nullptr) : resolver_(std::move(resolver)) {}
  // CompileError ("Unknown type name …") when it is not a type.
  TypePtr typeOf(const Expr& expr) const;
  // int[2] as BroadcastingList2[int] gives a fixed size.
  std::optional<std::pair<TypePtr, int32_t>> broadcastingList(const Expr& expr) const;
  // The constant that `expr` denotes, as a value of `type`: literals, containers of them, names of
  // constants and enum members. CompileError for anything else.
  IValue constantOfType(const Expr& expr, const TypePtr& type) const;
  // The declared signature: default values evaluated, missing annotations are Tensor, no return
  // annotation leaves returns empty to be inferred. With `skip_self` the first argument has no type
  // (null): the caller knows the class.
  FunctionSchema schemaOf(const Def& def, bool skip_self) const;

 private:
  TypePtr typeNamedBy(const Expr& expr) const;
  ResolverPtr resolver_;
};

// CompileError at `range` unless dicts may have keys of this type.
void checkDictKeyType(const SourceRange& range, const Type& key);

}  // namespace wick
