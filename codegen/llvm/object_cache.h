// ObjectCache: object files of earlier processes, a file each in a folder that only its owner can
// read and write.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace wick::codegen {

// Thread-safe; several processes may share a folder. Every failure to read or write is a miss: a
// cache may be lost at any time.
class ObjectCache {
 public:
  // `folder` is created when something is stored. An empty name is a cache that keeps nothing.
  // Once its files exceed `limit_bytes`, the oldest are removed.
  explicit ObjectCache(std::string folder, uint64_t limit_bytes = uint64_t{256} << 20);

  // The cache that the environment asks for, see jit.h.
  static ObjectCache& ofUser();

  // The file name for what `content` determines on this CPU with this build of the engine.
  static std::string keyOf(std::string_view content);

  std::optional<std::string> load(const std::string& key) const;
  void store(const std::string& key, std::string_view object) const;

 private:
  bool folderIsSafe() const;
  void removeOldest() const;
  std::string folder_;
  uint64_t limit_bytes_;
};

}  // namespace wick::codegen
