// Loading the archives of torch.jit.save.
//
// A loaded archive can do nothing but compute: classes and functions come from its printed source,
// values from its pickles, and every attribute is checked against its declared type before any code
// runs. Tensors share the mapped file; their writes stay private to the process.
#pragma once

#include <memory>
#include <string>

#include "frontend/compile_errors.h"
#include "ir/function.h"
#include "runtime/module.h"
#include "serialization/archive_reader.h"
#include "serialization/load_options.h"

namespace wick {

// Loads a module of format version 1 to 10 and compiles all of its code. Throws LoadError for what
// the archive holds wrongly, CompileError for its source, RuntimeError for what __setstate__
// raises and when everything goes to a device that this machine lacks.
Module loadModule(const std::string& path, const LoadOptions& options = {});
// `name` is what messages call the archive.
Module loadModule(Bytes file, const std::string& name, const LoadOptions& options = {});

// The classes and functions of a loaded module.
std::shared_ptr<CompilationUnit> compilationUnitOf(const Module& module);

}  // namespace wick
