// safetensors files: a header of JSON, then the bytes of tensors.
#pragma once

#include <string>

#include "serialization/archive_reader.h"
#include "serialization/named_tensors.h"

namespace wick {

// Every number of the header is checked: ranges must follow each other without gaps or overlaps and
// fit dtype and shape. The memory of the header's entries and of tensors that are not aligned is
// taken from `limits`. Tensors that are aligned share the file. Entries of "__metadata__" are
// ignored. Throws LoadError.
NamedTensors loadSafetensors(const std::string& path, const ArchiveLimits& limits = {});
NamedTensors loadSafetensors(Bytes file, const std::string& name, const ArchiveLimits& limits = {});

// Writes tensors in the given order, row-major. RuntimeError for names that occur twice, tensors
// that are not on the CPU and dtypes that the format lacks; then no file is touched.
void saveSafetensors(const NamedTensors& tensors, const std::string& path);

}  // namespace wick
