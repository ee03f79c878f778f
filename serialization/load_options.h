// Options for loading a module.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "runtime/run_options.h"
#include "serialization/archive_limits.h"
#include "serialization/device_map.h"

#pragma GCC visibility push(default)

namespace wick {

class CompileErrors;

struct LoadOptions {
  // The devices that tensors go to, and those that constants of the code and x.cuda() mean.
  DeviceMap devices{};
  // For the __setstate__ methods that run while loading.
  RunOptions run{};
  // Receives the records extra/NAME by NAME, when not null.
  std::unordered_map<std::string, std::string>* extra_files = nullptr;
  // Receives the version of the archive's format, when not null; 0 for programs of torch.export.
  int64_t* format_version = nullptr;
  // Limits on memory and sizes that the file may ask for.
  ArchiveLimits limits{};
  // Receives the errors of functions that do not compile, when not null, and the module is loaded
  // without them; otherwise they end loading.
  CompileErrors* compile_errors = nullptr;
};

}  // namespace wick

#pragma GCC visibility pop
