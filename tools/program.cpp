#include "tools/program.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "frontend/compile.h"
#include "runtime/call.h"
#include "serialization/import.h"

namespace wick::cli {
namespace {

// Larger scripts are no scripts.
constexpr size_t kMaxScriptBytes = size_t{64} << 20;

std::string listNames(const std::vector<std::string>& names) {
  return names.empty() ? "it has none" : fmt::format("it has {}", fmt::join(names, ", "));
}

}  // namespace

std::string readTextFile(const std::string& path) {
  std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) throwLoadError("{}: cannot be opened: {}", path, std::strerror(errno));
  std::string text;
  char buffer[1 << 16];
  while (size_t n = std::fread(buffer, 1, sizeof(buffer), file.get())) {
    text.append(buffer, n);
    if (text.size() > kMaxScriptBytes) throwLoadError("{}: too large for a script", path);
  }
  if (std::ferror(file.get())) throwLoadError("{}: cannot be read: {}", path, std::strerror(errno));
  return text;
}

Program Program::load(const std::string& path) {
  Program program;
  program.path_ = path;
  if (path.ends_with(".py")) {
    program.unit_ = compileSource(readTextFile(path), path);
    return program;
  }
  LoadOptions options;
  options.format_version = &program.version_;
  program.module_ = loadModule(path, options);
  program.unit_ = compilationUnitOf(program.module_);
  return program;
}

GraphFunction& Program::function(const Options& options) const {
  if (isArchive()) {
    if (!options.function.empty()) {
      throw CommandLineError("--function is for scripts; an archive has methods: --method");
    }
    const std::string name = options.method.empty() ? "forward" : options.method;
    if (GraphFunction* method = module_.findMethod(name)) return *method;
    throw UsageError(fmt::format("{}: {} has no method {}; {}", path_, module_.type()->name(), name,
                                 listNames(module_.methodNames())));
  }
  if (!options.method.empty()) {
    throw CommandLineError("--method is for archives; a script has functions: --function");
  }
  const std::vector<GraphFunction*> all = functions({});
  const std::string name = options.function.empty() ? "main" : options.function;
  std::vector<std::string> names;
  for (GraphFunction* function : all) {
    if (function->name() == name) return *function;
    names.push_back(function->name());
  }
  if (options.function.empty() && all.size() == 1) return *all[0];
  throw UsageError(fmt::format("{}: there is no function {}; {}", path_, name, listNames(names)));
}

std::vector<GraphFunction*> Program::functions(const Options& options) const {
  if (!options.method.empty() || !options.function.empty()) return {&function(options)};
  std::vector<GraphFunction*> result;
  if (isArchive()) {
    for (const std::string& name : module_.methodNames()) result.push_back(&module_.method(name));
    return result;
  }
  // Methods of classes are named with their class, __torch__.C.f; functions are __torch__.f.
  for (const auto& function : unit_->functions()) {
    const std::string& name = function->qualifiedName();
    const size_t dot = name.rfind('.');
    if (dot == std::string::npos || !unit_->findType(name.substr(0, dot))) {
      result.push_back(function.get());
    }
  }
  return result;
}

const char* Program::unpreparable(const Options& options) const {
  if (!isArchive()) return "a script has no module";
  if (options.grad) return "gradients are on";
  if (module_.isTraining()) return "the module is in training mode";
  if (callsModule(options)) return "the module has hooks";
  return nullptr;
}

IValue Program::call(const Options& options, GraphFunction& function, std::vector<IValue> arguments,
                     Kwargs kwargs, RunOptions run_options) const {
  if (callsModule(options)) return module_(std::move(arguments), std::move(kwargs), run_options);
  if (isArchive()) {
    return callMethod(module_.object(), function, std::move(arguments), std::move(kwargs),
                      run_options);
  }
  run_options.owner = unit_;
  return callFunction(function, std::move(arguments), std::move(kwargs), run_options);
}

}  // namespace wick::cli
