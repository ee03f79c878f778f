// Writing PyTorch's archives: stored ZIP entries below one root folder, payloads aligned to 64
// bytes so that readers may use them in place, ZIP64 where sizes need it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/keyed_hash.h"

namespace wick {

// Used by one thread. Without finish() the file is unreadable, or none where there is a path.
class ArchiveWriter {
 public:
  using Sink = std::function<void(std::span<const std::byte>)>;

  // `root` becomes the folder of all records; an empty one: they lie in none. `sink` receives the
  // file in order.
  ArchiveWriter(Sink sink, std::string root);
  // Writes to a file, which finish() lets replace one that is there (core/output_file.h).
  // Throws RuntimeError when that fails.
  static ArchiveWriter toFile(const std::string& path, std::string root);

  // Names must be new (RuntimeError).
  void write(const std::string& record, std::span<const std::byte> data);
  void write(const std::string& record, std::string_view text);
  // A record of several parts.
  void write(const std::string& record, std::span<const std::span<const std::byte>> parts);
  // Forty digits made of the names and checksums of all records so far: equal for equal contents.
  std::string contentId() const;
  // Writes the directory and closes the file.
  void finish();

 private:
  struct Entry {
    std::string path;
    uint64_t offset;
    uint64_t size;
    uint32_t crc;
  };
  void emit(std::span<const std::byte> data);
  void emit(const std::string& data);

  Sink sink_;
  std::function<void()> close_;
  std::string root_;
  uint64_t offset_ = 0;
  std::vector<Entry> entries_;
  KeyedSet<std::string> names_;
};

}  // namespace wick
