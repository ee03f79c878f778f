#include "serialization/npz.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/keyed_hash.h"
#include "serialization/archive_writer.h"
#include "serialization/npy.h"

namespace wick {
namespace {

constexpr std::string_view kSuffix = ".npy";

}  // namespace

NamedTensors loadNpz(const std::string& path, const ArchiveLimits& limits) {
  return loadNpz(mapFile(path), path, limits);
}

NamedTensors loadNpz(Bytes file, const std::string& name, const ArchiveLimits& limits) {
  ArchiveReader archive(std::move(file), name, limits, ArchiveReader::Layout::Flat);
  NamedTensors tensors;
  for (const std::string& record : archive.records()) {
    if (!record.ends_with(kSuffix)) throwLoadError("{}: record '{}' is no .npy file", name, record);
    Bytes bytes = archive.read(record);
    // Most are not aligned, so they are copied.
    if (!archive.budget()->take(bytes.size())) {
      throwLoadError("{}: record '{}': the values take more memory than a file of this size may",
                     name, record);
    }
    Tensor tensor = loadNpy(std::move(bytes), fmt::format("{}: record '{}'", name, record));
    tensors.emplace_back(record.substr(0, record.size() - kSuffix.size()), std::move(tensor));
  }
  return tensors;
}

void saveNpz(const NamedTensors& tensors, const std::string& path) {
  KeyedSet<std::string> names;
  for (const auto& [name, tensor] : tensors) {
    WICK_CHECK(!name.empty() && names.insert(name).second, "save: the name '{}' {}", name,
               name.empty() ? "is empty" : "occurs twice");
    npyHeader(tensor);
  }
  ArchiveWriter writer = ArchiveWriter::toFile(path, "");
  for (const auto& [name, tensor] : tensors) {
    const std::string header = npyHeader(tensor);
    const Tensor dense = tensor.contiguous();
    const std::span<const std::byte> parts[] = {
        std::as_bytes(std::span(header.data(), header.size())),
        std::span(static_cast<const std::byte*>(dense.rawData()),
                  static_cast<size_t>(dense.numel()) * dense.itemSize())};
    writer.write(name + std::string(kSuffix), parts);
  }
  writer.finish();
}

}  // namespace wick
