// The files of torch.export: archives of one or several programs with their weights.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/ivalue.h"
#include "serialization/archive_reader.h"
#include "serialization/exported/schema.h"
#include "serialization/load_options.h"

namespace wick::exported {

// One program as it lies in a file.
struct StoredProgram {
  std::string name;  // of the model in its package
  ProgramRecord program;
  // Parameters, buffers, constants and objects by dotted name. Tensors that share memory in the file do so here.
  KeyedMap<std::string, IValue> values;
};

// Whether an archive with these records is one of torch.export, in any of its layouts.
bool isExportedProgram(const ArchiveReader& archive);

// Reads packages since PyTorch 2.8 and the flat archives before. Tensors lie in the mapped file, and go to devices as
// `options` says. Receives extra files. Throws LoadError for what the file holds wrongly, RuntimeError when everything goes to
// a device that this machine lacks.
std::vector<StoredProgram> readPackage(const std::shared_ptr<ArchiveReader>& archive,
                                       const LoadOptions& options);

}  // namespace wick::exported
