// Reading PyTorch's archives: ZIP files with one root folder, whose stored entries are used in
// place.
//
// The file is mapped privately, so a tensor that lies in a record may be written without changing
// the file. Every offset and size is checked against the file before use, and no two entries may
// share bytes. The central directory is believed; of the local headers only the name and the
// lengths that locate the payload are read, because PyTorch's writer streams and leaves their sizes
// empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/keyed_hash.h"
#include "serialization/archive_limits.h"
#include "serialization/load_budget.h"

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

// A file that cannot be opened, or is a folder or a device.
class FileError : public LoadError {
 public:
  // what() is "PATH: REASON"; `code` is errno's number.
  FileError(std::string path, int code, std::string reason);
  ~FileError() override;
  const std::string& path() const { return path_; }
  int code() const { return code_; }
  const std::string& reason() const { return reason_; }

 private:
  std::string path_;
  int code_;
  std::string reason_;
};

// The whole file, mapped copy-on-write. Throws FileError, or LoadError. Another process that shortens the file
// while it is mapped makes later reads fail with a bus error; use readFile for files that are not
// at rest.
Bytes mapFile(const std::string& path);
// The whole file, read into memory aligned to 64 bytes.
Bytes readFile(const std::string& path);
// A copy of `data`, aligned to 64 bytes.
Bytes copyBytes(std::span<const std::byte> data);

// Immutable after construction but for the memory that is left to it: one thread at a time.
class ArchiveReader {
 public:
  using Limits = ArchiveLimits;
  // Records lie in one folder, that of the first entry, or anywhere.
  enum class Layout { OneFolder, Flat };

  // `name` is what messages call the archive. Throws LoadError when `file` is no ZIP archive, when
  // entries overlap, lie outside of the file or have a name twice.
  ArchiveReader(Bytes file, std::string name, Limits limits = {},
                Layout layout = Layout::OneFolder);
  static ArchiveReader open(const std::string& path, Limits limits = {});

  // Whether the bytes begin as a ZIP archive does.
  static bool looksLikeZip(std::span<const std::byte> file);

  const std::string& name() const { return name_; }
  // The folder that holds all records, without the slash; empty of a flat archive.
  const std::string& root() const { return root_; }
  // Record names below the root, in the order of the directory.
  const std::vector<std::string>& records() const { return records_; }
  bool has(std::string_view record) const;
  // Bytes of its contents, inflated. Throws LoadError when there is no such record.
  uint64_t sizeOf(std::string_view record) const { return find(record).size; }
  const Limits& limits() const { return limits_; }
  // The memory that is left to loading the archive; readers of records take theirs from it too.
  const std::shared_ptr<LoadBudget>& budget() const { return budget_; }

  // The contents of a record, checked against its CRC. Stored records are not copied. Throws
  // LoadError that names the archive and the record.
  Bytes read(std::string_view record);
  // The same without the CRC check, for large payloads.
  Bytes map(std::string_view record);
  // Compares the contents of a record with its CRC, piece by piece, under the budget of the calling
  // thread. Throws LoadError that names the archive and the record.
  void verify(std::string_view record) const;

 private:
  struct Entry {
    uint64_t offset;  // of the local header; once the entry is known, of the payload
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
  void readDirectory(const Directory& directory, Layout layout);
  void readZip64Extra(std::string_view record, uint64_t offset, uint64_t length,
                      Entry& entry) const;
  struct Extent {
    uint64_t begin;
    uint64_t end;
  };
  Extent locate(std::string_view path, Entry& entry) const;
  void checkOverlap(std::vector<Extent> extents) const;
  const Entry& find(std::string_view record) const;
  Bytes get(std::string_view record, const Entry& entry);
  std::span<std::byte> packed(std::string_view record, const Entry& entry) const;
  Bytes inflate(std::string_view record, const Entry& entry, std::span<std::byte> packed);

  Bytes file_;
  std::string name_;
  Limits limits_;
  std::shared_ptr<LoadBudget> budget_;
  std::string root_;
  std::vector<std::string> records_;
  KeyedMap<std::string, Entry> entries_;
};

// Verifies each record of an archive (ArchiveReader::verify). Throws LoadError.
void verifyRecords(const Bytes& file, const std::string& name, const ArchiveLimits& limits = {});

}  // namespace wick
