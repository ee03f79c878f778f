#include "tools/loaded_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <span>

#include "core/source_origin.h"
#include "frontend/compile.h"
#include "runtime/call.h"
#include "runtime/hooked_call.h"
#include "runtime/inference.h"
#include "runtime/module_paths.h"
#include "serialization/file_kind.h"
#include "serialization/import.h"
#include "tools/advice.h"
#include "tools/terminal.h"

namespace wick::cli {
namespace {

// Larger scripts are no scripts.
constexpr size_t kMaxScriptBytes = size_t{64} << 20;

std::string listNames(const std::vector<std::string>& names) {
  return names.empty() ? "it has none" : fmt::format("it has {}", fmt::join(names, ", "));
}

// All that comes from a stream; LoadError when it is more than `most` bytes, or cannot be read.
std::string readAll(FILE* file, const std::string& name, size_t most) {
  std::string text;
  char buffer[1 << 16];
  while (size_t n = std::fread(buffer, 1, sizeof(buffer), file)) {
    if (text.size() + n > most) throwLoadError("{}: too large", name);
    checkAllocation("load", text.capacity() < text.size() + n ? 2 * text.size() + n : 0);
    text.append(buffer, n);
  }
  if (std::ferror(file)) throwLoadError("{}: cannot be read: {}", name, std::strerror(errno));
  return text;
}

std::shared_ptr<CompilationUnit> compileScript(const std::string& text, const std::string& name,
                                               CompileErrors* errors) {
  try {
    if (errors) {
      auto unit = std::make_shared<CompilationUnit>();
      compileInto(unit, text, name, errors);
      return unit;
    }
    return compileSource(text, name);
  } catch (const CompileError& error) {
    const std::string advice = adviceForProgram(error, text);
    if (advice.empty()) throw;
    std::string what = error.what();
    while (what.ends_with('\n')) what.pop_back();
    throw LoadError(what + "\n\n" + advice);
  }
}

// Whether the bytes may be a script, rather than an archive or a page of the web. Strange characters
// are the compiler's to complain about, zeros are not.
bool isScript(const Bytes& file) {
  const FileKind kind = contentsOf(file).kind;
  return kind == FileKind::Text || kind == FileKind::Empty ||
         (kind == FileKind::Unknown && static_cast<unsigned char>(file.text()[0]) < 0x80 &&
          file.text().find('\0') == std::string_view::npos);
}

}  // namespace

std::string readTextFile(const std::string& path) {
  std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) throwLoadError("{}: cannot be opened: {}", path, std::strerror(errno));
  return readAll(file.get(), path, kMaxScriptBytes);
}

LoadedFile LoadedFile::load(const std::string& path, const DeviceMap& devices) {
  return load(path, devices, nullptr, false);
}

LoadedFile LoadedFile::loadVerified(const std::string& path) {
  return load(path, Device(), nullptr, true);
}

LoadedFile LoadedFile::loadAsFarAsPossible(const std::string& path) {
  CompileErrors errors = CompileErrors::unlimited();
  LoadedFile program = load(path, Device(), &errors, false);
  for (const CompileError& error : errors.all()) program.errors_.emplace_back(error.what());
  return program;
}

bool LoadedFile::compiles(GraphFunction& function) const {
  if (errors_.empty()) return true;
  try {
    function.ensureDefined();
    return true;
  } catch (const CompileError&) {
    return false;
  }
}

void LoadedFile::tellErrors() const {
  if (errors_.empty()) return;
  std::string text =
      fmt::format("\n{} does not compile as a whole (see also the command missing):\n", path_);
  for (const std::string& error : errors_) text += error + (error.ends_with('\n') ? "" : "\n");
  std::fflush(stdout);
  std::fputs(shownOn(stderr, text).c_str(), stderr);
}

std::string placeOf(GraphFunction& outermost, const Node& node) {
  const std::string path = modulePathOf(outermost, node);
  const std::string location = userRange(node.range()).location();
  return path.empty() || location.empty() ? path + location : path + " " + location;
}

LoadedFile LoadedFile::load(const std::string& path, const DeviceMap& devices,
                            CompileErrors* errors, bool verified) {
  devices.check();
  LoadedFile program;
  program.path_ = path == "-" ? "<standard input>" : path;
  LoadOptions options;
  options.format_version = &program.version_;
  options.compile_errors = errors;
  options.devices = [devices, names = program.device_names_](const std::string& name) {
    names->insert(name);
    return devices.find(name);
  };
  Bytes archive;
  if (path == "-" || path.ends_with(".py")) {
    const std::string text =
        path == "-" ? readAll(stdin, program.path_, SIZE_MAX) : readTextFile(path);
    archive = copyBytes(std::as_bytes(std::span(text.data(), text.size())));
    if (isScript(archive)) {
      program.unit_ = compileScript(text, program.path_, errors);
      program.advice_ = adviceForModuleClass(text);
      return program;
    }
  } else {
    archive = mapFile(path);
  }
  if (verified && ArchiveReader::looksLikeZip(archive.data)) verifyRecords(archive, program.path_);
  program.module_ = loadModule(std::move(archive), program.path_, options);
  program.unit_ = compilationUnitOf(program.module_);
  return program;
}

LoadedFile LoadedFile::withModuleOfItsOwn() const {
  LoadedFile program = *this;
  if (isArchive()) program.module_ = module_.clone();
  return program;
}

GraphFunction& LoadedFile::function(const Options& options) const {
  if (isArchive()) {
    if (!options.function.empty()) {
      throw CommandLineError("--function is for scripts; an archive has methods: --method");
    }
    const std::string name = options.method.empty() ? "forward" : options.method;
    if (GraphFunction* method = module_.findMethod(name)) return *method;
    throw UsageError(fmt::format("{}: {} has no method {}; {}", path_,
                                 readableClassName(module_.type()->name()), name,
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
  std::string what = fmt::format("{}: there is no function {}; {}", path_, name, listNames(names));
  if (names.empty() && !advice_.empty()) what += "\n\n" + advice_;
  throw UsageError(what);
}

std::vector<GraphFunction*> LoadedFile::functions(const Options& options) const {
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

const char* LoadedFile::unpreparable(const Options& options) const {
  if (!isArchive()) return "a script has no module";
  if (options.grad) return "gradients are on";
  if (module_.isTraining()) return "the module is in training mode";
  return nullptr;
}

std::shared_ptr<GraphFunction> LoadedFile::prepared(const Options& options, GraphFunction& method,
                                                    bool for_any_rank) const {
  const std::shared_ptr<GraphFunction> hooked =
      callsModule(options) ? functionWithHooks(module_) : nullptr;
  return optimizeForInference(module_.object(), hooked ? *hooked : method, for_any_rank);
}

IValue LoadedFile::call(const Options& options, GraphFunction& function,
                        std::vector<IValue> arguments, Kwargs kwargs,
                        RunOptions run_options) const {
  if (callsModule(options)) return module_(std::move(arguments), std::move(kwargs), run_options);
  if (isArchive()) {
    return callMethod(module_.object(), function, std::move(arguments), std::move(kwargs),
                      run_options);
  }
  run_options.owner = unit_;
  return callFunction(function, std::move(arguments), std::move(kwargs), run_options);
}

}  // namespace wick::cli
