// Loading the archives of torch.jit.save.
//
// A loaded archive can do nothing but compute: classes and functions come from its printed source,
// values from its pickles, and every attribute is checked against its declared type before any code
// runs. Tensors share the mapped file; their writes stay private to the process.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/ivalue.h"
#include "ir/function.h"
#include "serialization/archive_reader.h"

namespace wick {

struct LoadOptions {
  // Runs a function of the archive: how __setstate__ is called. Empty: such archives are refused.
  std::function<IValue(GraphFunction& function, std::vector<IValue> arguments)> run;
  // Receives the records extra/NAME by NAME, when not null.
  std::unordered_map<std::string, std::string>* extra_files = nullptr;
  ArchiveLimits limits;
};

// A module object with the code of its classes, all of it compiled. The object keeps the unit
// alive.
struct LoadedArchive {
  ObjectRef object;
  std::shared_ptr<CompilationUnit> unit;
  int64_t version = 0;  // of the archive's format
};

// Versions 1 to 10. Throws LoadError for what the archive holds wrongly and CompileError for its
// source.
LoadedArchive loadArchive(const std::string& path, const LoadOptions& options = {});
// `name` is what messages call the archive.
LoadedArchive loadArchive(Bytes file, const std::string& name, const LoadOptions& options = {});

}  // namespace wick
