// NumPy's .npz files: ZIP archives of .npy files.
#pragma once

#include <string>

#include "serialization/archive_reader.h"
#include "serialization/named_tensors.h"

namespace wick {

// As numpy.savez and savez_compressed write them; names lose their ".npy". See loadNpy for what is
// refused. Throws LoadError.
NamedTensors loadNpz(const std::string& path, const ArchiveLimits& limits = {});
NamedTensors loadNpz(Bytes file, const std::string& name, const ArchiveLimits& limits = {});

// Uncompressed. RuntimeError as of saveNpy, and for names that occur twice; then no file is
// touched.
void saveNpz(const NamedTensors& tensors, const std::string& path);

}  // namespace wick
