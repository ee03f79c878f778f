// Values of the expressions that archives write for class constants, defaults and enum members.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/ivalue.h"
#include "frontend/tree_views.h"

namespace wick {

struct ConstantScope {
  // CONSTANTS.name; a null function knows none.
  std::function<IValue(const SourceRange&, const std::string& name)> constant;
  // The type that annotate(T, value) names.
  std::function<TypePtr(const Expr&)> type;
  // The device for torch.device("name"); nullopt when the name is no device.
  std::function<std::optional<Device>(const std::string& name)> device;
};

// Numbers and their negations, strings, True, False, None, inf, nan, tuples, lists, dicts,
// torch.device("…"), annotate(T, …) and CONSTANTS.cN. CompileError for anything else.
IValue evaluateConstant(const Expr& expr, const ConstantScope& scope);

}  // namespace wick
