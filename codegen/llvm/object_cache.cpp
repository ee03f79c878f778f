#include "codegen/llvm/object_cache.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/Support/SHA256.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "codegen/llvm/target.h"

namespace wick::codegen {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "wick object 2\n";
constexpr size_t kDigestSize = 32;

std::string digest(std::string_view bytes) {
  auto hash = llvm::SHA256::hash(
      llvm::ArrayRef(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
  return std::string(hash.begin(), hash.end());
}

// The key is part of it: a file that came under another one's name is code for something else.
std::string checksum(std::string_view key, std::string_view object) {
  return digest(fmt::format("{}\n{}", key, object));
}

std::string hex(std::string_view bytes) {
  std::string text;
  for (unsigned char c : bytes) text += fmt::format("{:02x}", c);
  return text;
}

// Looks for the build id among the notes of the module that contains this function.
int findBuildId(dl_phdr_info* info, size_t, void* result) {
  auto address = reinterpret_cast<uintptr_t>(&findBuildId);
  bool ours = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    ours |= segment.p_type == PT_LOAD && address >= begin && address < begin + segment.p_memsz;
  }
  if (!ours) return 0;
  auto aligned = [](size_t n) { return (n + 3) & ~size_t{3}; };
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const char* at = reinterpret_cast<const char*>(info->dlpi_addr + segment.p_vaddr);
    const char* end = at + segment.p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      const auto* note = reinterpret_cast<const ElfW(Nhdr)*>(at);
      const char* name = at + sizeof(*note);
      const char* data = name + aligned(note->n_namesz);
      if (note->n_type == NT_GNU_BUILD_ID &&
          std::string_view(name, note->n_namesz) == std::string_view("GNU", 4)) {
        *static_cast<std::string*>(result) = hex(std::string_view(data, note->n_descsz));
        return 1;
      }
      at = data + aligned(note->n_descsz);
    }
  }
  return 1;
}

// Tells builds of the engine apart, because another emitter makes other code of the same content.
// Without a build id, the executable's size and time must do.
const std::string& engineIdentity() {
  // Never destroyed, like the user's cache below: a thread may compile while the process ends.
  static const std::string& identity = *new std::string([] {
    std::string id;
    dl_iterate_phdr(findBuildId, &id);
    struct stat self {};
    if (id.empty() && stat("/proc/self/exe", &self) == 0) {
      id = fmt::format("{}-{}-{}", self.st_size, self.st_mtim.tv_sec, self.st_mtim.tv_nsec);
    }
    return id;
  }());
  return identity;
}

std::string folderOfUser() {
  if (const char* chosen = std::getenv("WICK_CACHE_DIR")) return chosen;
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache)
    return fmt::format("{}/wick", cache);
  if (const char* home = std::getenv("HOME"); home && *home)
    return fmt::format("{}/.cache/wick", home);
  return "";
}

}  // namespace

ObjectCache::ObjectCache(std::string folder, uint64_t limit_bytes)
    : folder_(std::move(folder)), limit_bytes_(limit_bytes) {}

ObjectCache& ObjectCache::ofUser() {
  static ObjectCache& cache = *new ObjectCache(folderOfUser());
  return cache;
}

std::string ObjectCache::keyOf(std::string_view content) {
  return hex(digest(fmt::format("{}\n{}\n{}\n{}", engineIdentity(), LLVM_VERSION_STRING,
                                hostDescription(), content)));
}

// Objects are executed, so nobody else may be able to write them.
bool ObjectCache::folderIsSafe() const {
  struct stat info {};
  return !folder_.empty() && stat(folder_.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
         info.st_uid == geteuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

std::optional<std::string> ObjectCache::load(const std::string& key) const {
  if (!folderIsSafe()) return std::nullopt;
  const std::string path = fmt::format("{}/{}", folder_, key);
  struct stat info {};
  // A pipe would be waited for, and a device might never end.
  if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  if (static_cast<uint64_t>(info.st_size) > limit_bytes_) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  size_t header = kMagic.size() + kDigestSize;
  if (bytes.size() < header || !bytes.starts_with(kMagic)) return std::nullopt;
  std::string object = bytes.substr(header);
  if (bytes.compare(kMagic.size(), kDigestSize, checksum(key, object)) != 0) return std::nullopt;
  return object;
}

void ObjectCache::store(const std::string& key, std::string_view object) const {
  if (folder_.empty()) return;
  std::error_code error;
  if (!fs::exists(folder_, error)) {
    fs::create_directories(folder_, error);
    fs::permissions(folder_, fs::perms::owner_all, error);
  }
  if (!folderIsSafe()) return;
  static std::atomic<uint64_t> stored{0};
  // Under a name of its own first: a reader sees the whole file or none.
  uint64_t number = stored.fetch_add(1);
  std::string temporary = fmt::format("{}/{}.{}.{}", folder_, key, getpid(), number);
  {
    std::ofstream file(temporary, std::ios::binary);
    file << kMagic << checksum(key, object) << object;
    if (!file.flush()) {
      file.close();
      fs::remove(temporary, error);
      return;
    }
  }
  fs::rename(temporary, fmt::format("{}/{}", folder_, key), error);
  if (error) fs::remove(temporary, error);
  constexpr uint64_t kStoresPerCheck = 64;
  if (number % kStoresPerCheck == 0) removeOldest();
}

void ObjectCache::removeOldest() const {
  struct Entry {
    fs::file_time_type time;
    uint64_t size;
    fs::path path;
  };
  std::vector<Entry> entries;
  uint64_t total = 0;
  std::error_code error;
  for (fs::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
    std::error_code gone;
    Entry entry{it->last_write_time(gone), it->file_size(gone), it->path()};
    if (gone) continue;
    total += entry.size;
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.time < b.time; });
  for (const Entry& entry : entries) {
    if (total <= limit_bytes_) return;
    std::error_code gone;
    fs::remove(entry.path, gone);
    total -= entry.size;
  }
}

}  // namespace wick::codegen
