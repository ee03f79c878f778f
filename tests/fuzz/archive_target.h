// Fuzz targets: a ZIP archive, and a file of torch.save.
#pragma once

#include <span>
#include <string>

#include "serialization/stored_values.h"
#include "serialization/torch_save.h"

namespace wick {

inline Bytes bytesOfInput(const std::string& input) {
  return copyBytes(std::as_bytes(std::span(input.data(), input.size())));
}

// Every record by itself: loading a value stops at the first that is damaged.
inline void zipTarget(const std::string& input) {
  ArchiveReader archive(bytesOfInput(input), "fuzz");
  for (const std::string& record : archive.records()) archive.map(record);
  for (const std::string& record : archive.records()) archive.read(record);
}

inline void archiveTarget(const std::string& input) {
  loadValue(bytesOfInput(input), "fuzz").repr();
}

}  // namespace wick
