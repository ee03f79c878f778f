#include "wick.h"

#include "frontend/compile.h"
#include "ir/function.h"
#include "serialization/import.h"

namespace wick {
namespace {

constexpr std::string_view kPrefix = "__torch__.";

}  // namespace

Program::Program(std::shared_ptr<CompilationUnit> unit) : unit_(std::move(unit)), owner_(unit_) {
  known();
}

CompilationUnit& Program::known() const {
  if (!unit_) throw UsageError("Program: the handle holds no program");
  return *unit_;
}

std::vector<std::string> Program::functionNames() const {
  std::vector<std::string> names;
  for (const auto& function : known().functions()) {
    std::string name = function->qualifiedName();
    if (name.starts_with(kPrefix)) name.erase(0, kPrefix.size());
    // Methods have a class between the prefix and their own name.
    if (name.find('.') == std::string::npos) names.push_back(std::move(name));
  }
  return names;
}

GraphFunction& Program::function(const std::string& name) const {
  GraphFunction* function = known().findFunction(std::string(kPrefix) + name);
  if (!function) function = unit_->findFunction(name);
  if (!function) throw UsageError("the program has no function '" + name + "'");
  return *function;
}

IValue Program::call(const std::string& name, std::vector<IValue> arguments, Kwargs kwargs,
                     RunOptions options) const {
  return callFunction(function(name), std::move(arguments), std::move(kwargs), options, &owner_);
}

Program compile(const std::string& source, const std::string& file_name) {
  return Program(compileSource(source, file_name));
}

Module load(const std::string& path) {
  return loadModule(path);
}

}  // namespace wick
