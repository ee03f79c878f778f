// Reading PyTorch's archives: ZIP files with one root folder, whose stored entries are used in
// place.
//
// The file is mapped privately, so a tensor that lies in a record may be written without changing
// the file. Every offset and size is checked against the file before use. The central directory is
// believed; of the local headers only the lengths that locate the payload are read, because
// PyTorch's writer streams and leaves their sizes empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/keyed_hash.h"

namespace wick {

// A block of bytes together with what keeps it alive.
struct Bytes {
  std::span<std::byte> data;
  std::shared_ptr<const void> owner;

  size_t size() const { return data.size(); }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(data.data()), data.size()};
  }
};

// The whole file, mapped copy-on-write. Throws LoadError. Another process that shortens the file
// while it is mapped makes later reads fail with a bus error; use readFile for files that are not
// at rest.
Bytes mapFile(const std::string& path);
// The whole file, read into memory aligned to 64 bytes.
Bytes readFile(const std::string& path);
// A copy of `data`, aligned to 64 bytes.
Bytes copyBytes(std::span<const std::byte> data);

struct ArchiveLimits {
  size_t max_entries = 1 << 20;
  // Deflated records: of one record, and of all that are read through one reader.
  uint64_t max_inflated_record = uint64_t{1} << 32;
  uint64_t max_inflated_total = uint64_t{1} << 34;
};

// Immutable after construction but for the count of inflated bytes: one thread at a time.
class ArchiveReader {
 public:
  using Limits = ArchiveLimits;

  // `name` is what messages call the archive. Throws LoadError when `file` is no ZIP archive.
  ArchiveReader(Bytes file, std::string name, Limits limits = {});
  static ArchiveReader open(const std::string& path, Limits limits = {});

  // Whether the bytes begin as a ZIP archive does.
  static bool looksLikeZip(std::span<const std::byte> file);

  const std::string& name() const { return name_; }
  // The folder that holds all records, without the slash.
  const std::string& root() const { return root_; }
  // Record names below the root, in the order of the directory.
  const std::vector<std::string>& records() const { return records_; }
  bool has(std::string_view record) const;

  // The contents of a record, checked against its CRC. Stored records are not copied. Throws
  // LoadError that names the archive and the record.
  Bytes read(std::string_view record);
  // The same without the CRC check, for large payloads.
  Bytes map(std::string_view record);

 private:
  struct Entry {
    uint64_t header_offset;
    uint64_t compressed_size;
    uint64_t size;
    uint32_t crc;
    uint16_t method;
    uint16_t flags;
  };
  struct Directory {
    uint64_t offset;
    uint64_t size;
    uint64_t count;
  };

  [[noreturn]] void fail(const std::string& what) const;
  [[noreturn]] void failRecord(std::string_view record, const std::string& what) const;
  template <class T>
  T load(uint64_t offset) const;
  Directory findDirectory() const;
  void readDirectory(const Directory& directory);
  void readZip64Extra(std::string_view record, uint64_t offset, uint64_t length,
                      Entry& entry) const;
  const Entry& find(std::string_view record) const;
  Bytes get(std::string_view record, const Entry& entry);
  Bytes inflate(std::string_view record, const Entry& entry, std::span<std::byte> packed);

  Bytes file_;
  std::string name_;
  Limits limits_;
  std::string root_;
  std::vector<std::string> records_;
  KeyedMap<std::string, Entry> entries_;
  uint64_t inflated_ = 0;
};

}  // namespace wick
