// Builtins that are written in script: operators composed of others, and the functions of
// torch.nn.functional that have no operator of the same meaning.
#pragma once

#include <string>
#include <vector>

#include "frontend/resolver.h"
#include "frontend/tree_views.h"
#include "ir/function.h"

namespace wick {

// The script overloads of an operator name ("aten::add" of a number and a tensor), in order; empty
// for none. Their schemas are known, their bodies perhaps not compiled yet. Thread-safe.
std::vector<GraphFunction*> builtinFunctionsNamed(Symbol name);

// The script function with this qualified name, "torch.nn.functional.dropout"; null when there is
// none. It is compiled when first needed and lives as long as the process. Thread-safe.
GraphFunction* builtinScriptFunction(const std::string& qualified_name);
// A class written in script, "torch.autograd.grad_mode.no_grad"; null when there is none.
TypePtr builtinScriptType(const std::string& qualified_name);
// A function whose parameters take any type, compiled anew by each caller: the text and where its
// names come from. InternalError for an unknown name. Thread-safe.
struct GenericFunction {
  Def def;
  ResolverPtr resolver;
};
GenericFunction builtinGenericFunction(const std::string& name);
// Compiles the body of one of these functions unless that has happened. Thread-safe.
void defineBuiltinFunction(GraphFunction& function);
// The names that builtinScriptFunction knows.
std::vector<std::string> builtinScriptNames();

}  // namespace wick
