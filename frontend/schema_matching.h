// Fits the arguments of a call to a schema: positions, keywords, defaults, implicit conversions,
// list building from varargs, type variables. Chooses among overloads.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "frontend/sugared_value.h"

namespace wick {

struct MatchedSchema {
  std::vector<Value*> inputs;
  std::vector<TypePtr> return_types;
  std::vector<std::string> return_names;  // empty: not a named tuple
};

// Inserts what conversions need at the graph's insertion point. Throws CompileError with the
// reason.
MatchedSchema matchSchema(const FunctionSchema& schema, const SourceRange& range, Graph& graph,
                          const std::vector<NamedValue>& args,
                          const std::vector<NamedValue>& kwargs,
                          const std::optional<NamedValue>& self = std::nullopt);
// The first of `schemas` that matches, without implicit conversions if possible; the CompileError
// lists every candidate with the reason why it failed.
std::pair<size_t, MatchedSchema> matchSchemas(const std::vector<const FunctionSchema*>& schemas,
                                              const SourceRange& range, Graph& graph,
                                              const std::vector<NamedValue>& args,
                                              const std::vector<NamedValue>& kwargs,
                                              const std::optional<NamedValue>& self = std::nullopt);
// Emits the operator (or builtin script function) `name`. Several results come back as a tuple.
Value* emitBuiltinCall(const SourceRange& range, Graph& graph, Symbol name,
                       const std::vector<NamedValue>& args,
                       const std::vector<NamedValue>& kwargs = {},
                       const std::optional<NamedValue>& self = std::nullopt);
// The same of values by position.
Value* emitBuiltin(const SourceRange& range, Graph& graph, Symbol name,
                   const std::vector<Value*>& args);
// Whether emitBuiltinCall would find an overload, without emitting.
bool isBuiltinOperator(Symbol name);

// What stands for a value of another type: where it is stored, only a literal `[]` for any list; in
// calls a tuple for a list too; and, if no overload fits otherwise, a Tensor for a number and the
// like.
enum class ImplicitConversions { EmptyLists, TuplesToLists, All };

// `value` as `type`, by subtyping or an implicit conversion. Returns the value unchanged when it
// does not fit: the caller checks the type.
Value* tryConvertToType(const SourceRange& range, Graph& graph, const TypePtr& type, Value* value,
                        ImplicitConversions allowed);

// One value as it is, several as a tuple, none as None.
Value* packOutputs(Graph& graph, std::vector<Value*> values,
                   const std::vector<std::string>& names = {});

}  // namespace wick
