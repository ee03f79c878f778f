// The files of torch.save: a value of numbers, strings, tensors, tuples, lists and dicts.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/ivalue.h"
#include "core/keyed_hash.h"
#include "serialization/archive_reader.h"
#include "serialization/archive_writer.h"

namespace wick {

// Reads both forms of torch.save, the archive and the older sequence of pickles. Tensors of an
// archive share the mapped file; their writes stay private. dtypes, layouts and memory formats
// become ints, torch.Size and named sizes become tuples. `limits` holds for both forms. Throws
// LoadError.
IValue loadValue(const std::string& path, const ArchiveLimits& limits = {});
// `name` is what messages call the data.
IValue loadValue(Bytes file, const std::string& name, const ArchiveLimits& limits = {});

// Writes an archive that torch.load reads, whole or not at all (core/output_file.h). NamedTuples
// become plain tuples; gradients are not recorded. Throws RuntimeError for values that Python could
// not read back (see Pickler), before it touches the file.
void saveValue(const IValue& value, const std::string& path);
std::string saveValueToString(const IValue& value);

// The storages of an archive's tensors: record PREFIX/KEY, each read once. Storages that are
// aligned lie in the file's mapping; the memory of others is taken from the archive's budget.
class ArchiveStorages {
 public:
  ArchiveStorages(std::shared_ptr<ArchiveReader> archive, std::string prefix)
      : archive_(std::move(archive)), prefix_(std::move(prefix)) {}
  Ref<Storage> get(const std::string& key, const std::string& location);

 private:
  std::shared_ptr<ArchiveReader> archive_;
  std::string prefix_;
  KeyedMap<std::string, Ref<Storage>> storages_;
};

// Writes the storages that a pickler collected as records FOLDER/0, FOLDER/1, …
void writeStorages(const std::string& folder, const std::vector<Ref<Storage>>& storages,
                   ArchiveWriter& writer);

// The bytes of a pickle. Throws LoadError when they are more than the archive's limits allow.
Bytes readPickle(ArchiveReader& archive, const std::string& record);

// Throws LoadError when the archive says that its tensors are big-endian.
void checkByteOrder(ArchiveReader& archive);

}  // namespace wick
