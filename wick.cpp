#include "wick.h"

#include <istream>
#include <ostream>

#include "frontend/compile.h"
#include "ir/function.h"
#include "serialization/import.h"

namespace wick {
namespace {

constexpr std::string_view kPrefix = "__torch__.";

}  // namespace

std::ostream& operator<<(std::ostream& out, IntSpan sizes) {
  return out << formatInts(sizes);
}

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

Program trace(const TracedCode& code, const std::vector<IValue>& example_inputs,
              const TraceOptions& options) {
  return Program(traceUnit(code, example_inputs, options));
}

Module load(const std::string& path, const LoadOptions& options) {
  return loadModule(path, options);
}

Module load(std::istream& stream, const LoadOptions& options) {
  std::string text;
  char buffer[1 << 16];
  while (stream.read(buffer, sizeof(buffer)) || stream.gcount() > 0) {
    text.append(buffer, static_cast<size_t>(stream.gcount()));
  }
  if (stream.bad()) throwLoadError("<stream>: cannot be read");
  return loadFromMemory(std::as_bytes(std::span(text.data(), text.size())), options);
}

Module loadFromMemory(std::span<const std::byte> bytes, const LoadOptions& options) {
  return loadModule(copyBytes(bytes), "<memory>", options);
}

}  // namespace wick
