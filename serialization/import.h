// Loading the archives of torch.jit.save.
//
// A loaded archive can do nothing but compute: classes and functions come from its printed source,
// values from its pickles, and every attribute is checked against its declared type before any code
// runs. Tensors share the mapped file; their writes stay private to the process.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "frontend/compile_errors.h"
#include "ir/function.h"
#include "runtime/module.h"
#include "serialization/archive_reader.h"

namespace wick {

struct LoadOptions {
  // For the __setstate__ methods that run while loading.
  RunOptions run;
  // Receives the records extra/NAME by NAME, when not null.
  std::unordered_map<std::string, std::string>* extra_files = nullptr;
  // Receives the version of the archive's format, when not null.
  int64_t* format_version = nullptr;
  // What the file may ask for.
  ArchiveLimits limits;
  // Receives the errors of functions that do not compile, when not null, and the module is loaded
  // without them; otherwise they end loading.
  CompileErrors* compile_errors = nullptr;
};

// Loads a module of format version 1 to 10 and compiles all of its code. Throws LoadError for what
// the archive holds wrongly, CompileError for its source, RuntimeError for what __setstate__
// raises.
Module loadModule(const std::string& path, const LoadOptions& options = {});
// `name` is what messages call the archive.
Module loadModule(Bytes file, const std::string& name, const LoadOptions& options = {});

// The classes and functions of a loaded module.
std::shared_ptr<CompilationUnit> compilationUnitOf(const Module& module);

}  // namespace wick
