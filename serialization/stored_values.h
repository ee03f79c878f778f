// How values lie in an archive, of torch.save or of a module: pickles, and beside them storages.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/ivalue.h"
#include "core/keyed_hash.h"
#include "serialization/archive_reader.h"
#include "serialization/archive_writer.h"
#include "serialization/device_map.h"

namespace wick {

// loadValue (serialization/torch_save.h) of a file in memory. `name` is what messages call it.
IValue loadValue(Bytes file, const std::string& name, const ArchiveLimits& limits = {},
                 const DeviceMap& devices = {});

// The storages of an archive's tensors: record PREFIX/KEY, each read once. Storages that are
// aligned lie in the file's mapping; the memory of others is taken from the archive's budget.
class ArchiveStorages {
 public:
  ArchiveStorages(std::shared_ptr<ArchiveReader> archive, std::string prefix)
      : archive_(std::move(archive)), prefix_(std::move(prefix)) {}
  Ref<Storage> get(const std::string& key);

 private:
  std::shared_ptr<ArchiveReader> archive_;
  std::string prefix_;
  KeyedMap<std::string, Ref<Storage>> storages_;
};

// Returns why a file may not describe a tensor so, "" when it may. Sizes and strides are checked against the storage and
// against arithmetic that later overflows. The offset of a tensor without elements is moved into the storage.
std::string problemOfView(const Storage& storage, DType dtype, IntSpan sizes, IntSpan strides,
                          int64_t& offset);

// Writes the storages that a pickler collected as records FOLDER/0, FOLDER/1, … from whatever device they are on.
void writeStorages(const std::string& folder, const std::vector<Ref<Storage>>& storages,
                   ArchiveWriter& writer);

// The bytes of a pickle. Throws LoadError when they are more than the archive's limits allow.
Bytes readPickle(ArchiveReader& archive, const std::string& record);

// Throws LoadError when the archive says that its tensors are big-endian.
void checkByteOrder(ArchiveReader& archive);

}  // namespace wick
