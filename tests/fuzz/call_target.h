// Calls of whatever a fuzz target compiled.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "core/tensor.h"
#include "ir/function.h"
#include "runtime/call.h"

namespace wick {

// An argument for a declared type; none for types that no caller could make here.
inline std::optional<IValue> argumentFor(const TypePtr& type) {
  switch (type->kind()) {
    case TypeKind::Int:
      return IValue(int64_t{3});
    case TypeKind::Float:
      return IValue(0.5);
    case TypeKind::Bool:
      return IValue(true);
    case TypeKind::String:
      return IValue("text");
    case TypeKind::Tensor:
      return IValue(Tensor::zeros(DimVector{2, 3}, DType::Float));
    case TypeKind::Optional:
      return IValue();
    default:
      return std::nullopt;
  }
}

inline RunOptions fuzzRunOptions() {
  RunOptions options;
  options.max_steps = 2000;
  options.max_depth = 50;
  options.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  return options;
}

// Runs the function within limits if its arguments can be made; `self` is the first one of its
// class's methods. Only an InternalError leaves it.
inline void callWithLimits(GraphFunction& function, const std::shared_ptr<CompilationUnit>& unit,
                           const IValue& self = {}) {
  std::vector<IValue> arguments;
  for (const Argument& argument : function.schema().arguments()) {
    if (self.isObject() && *argument.type == *self.toObject().type()) {
      arguments.push_back(self);
      continue;
    }
    std::optional<IValue> value = argumentFor(argument.type);
    if (!value) return;
    arguments.push_back(std::move(*value));
  }
  RunOptions options = fuzzRunOptions();
  options.owner = unit;
  try {
    callFunction(function, std::move(arguments), {}, options).repr();
  } catch (const InternalError&) {
    throw;
  } catch (const Error&) {
  }
}

}  // namespace wick
