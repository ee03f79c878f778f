#include "core/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/budget.h"
#include "core/error.h"

namespace wick {
namespace {

// Small pieces are gathered; large ones are written from where they lie.
constexpr size_t kBuffer = size_t{64} << 10;
// One call of the system; between two, the run's time limit is looked at.
constexpr size_t kPiece = size_t{8} << 20;
// The disk begins to write before commit() waits for it.
constexpr size_t kSyncEvery = size_t{32} << 20;

std::string folderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Where a path leads; a link may lead to a file that is not there yet.
std::string behindLinks(std::string path) {
  constexpr int kMaxLinks = 40;
  for (int i = 0; i < kMaxLinks; ++i) {
    if (char* real = ::realpath(path.c_str(), nullptr)) {
      std::string result(real);
      std::free(real);
      return result;
    }
    std::array<char, PATH_MAX> to;
    const ssize_t length = ::readlink(path.c_str(), to.data(), to.size());
    if (length <= 0 || static_cast<size_t>(length) == to.size()) return path;
    std::string next(to.data(), static_cast<size_t>(length));
    path = next[0] == '/' ? std::move(next) : folderOf(path) + "/" + next;
  }
  return path;
}

std::string temporaryName(const std::string& folder) {
  static std::atomic<uint64_t> count{0};
  return fmt::format("{}/.wick-{}-{}.tmp", folder, ::getpid(), count++);
}

// Files of a temporary name may have been left by dead processes.
constexpr int kAttempts = 1000;

// The file behind a descriptor, for linkat().
std::string nameOfDescriptor(int fd) {
  return fmt::format("/proc/self/fd/{}", fd);
}

// A new file in the folder without a name, with the permissions that the process gives new files.
// -1 with errno: EOPNOTSUPP where there is no such thing.
int openNameless(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
  if (fd < 0) {
    // What systems answer that do not know the flag: they take it for opening a folder.
    if (errno == EISDIR || errno == EINVAL) errno = EOPNOTSUPP;
    return -1;
  }
  if (::access(nameOfDescriptor(fd).c_str(), F_OK) == 0) return fd;
  // Without /proc there is no way to name it.
  ::close(fd);
  errno = EOPNOTSUPP;
  return -1;
}

// The same with a name.
int openTemporary(const std::string& folder, std::string& path) {
  for (int i = 0; i < kAttempts; ++i) {
    path = temporaryName(folder);
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

}  // namespace

OutputFile::OutputFile(std::string path) : path_(std::move(path)), target_(behindLinks(path_)) {
  struct stat info {};
  const bool exists = ::stat(target_.c_str(), &info) == 0;
  if (!exists && errno == ELOOP) fail(errno);
  if (exists && S_ISDIR(info.st_mode)) fail(EISDIR);
  if (exists && !S_ISREG(info.st_mode)) {
    replaces_ = false;
    fd_ = ::open(target_.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd_ < 0) fail(errno);
    return;
  }
  if (path_.empty() || path_.back() == '/') fail(path_.empty() ? ENOENT : EISDIR);
  // A file that may not be written is not replaced either.
  if (exists && ::access(target_.c_str(), W_OK) != 0) fail(errno);
  const std::string folder = folderOf(target_);
  fd_ = openNameless(folder);
  if (fd_ < 0 && errno == EOPNOTSUPP) fd_ = openTemporary(folder, temporary_);
  if (fd_ < 0) {
    const int error = errno;
    temporary_.clear();
    fail(error);
  }
  if (exists && ::fchmod(fd_, info.st_mode & 07777) != 0) {
    const int error = errno;
    abandon();
    fail(error);
  }
}

OutputFile::~OutputFile() {
  abandon();
}

void OutputFile::abandon() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  if (!temporary_.empty()) ::unlink(std::exchange(temporary_, {}).c_str());
}

void OutputFile::fail(int error) const {
  throwRuntimeError("cannot write {}: {}", path_, std::strerror(error));
}

void OutputFile::write(std::span<const std::byte> data) {
  WICK_ASSERT(fd_ >= 0, "{} is written after it was committed", path_);
  if (data.size() < kBuffer) {
    buffer_.append(reinterpret_cast<const char*>(data.data()), data.size());
    if (buffer_.size() >= kBuffer) flush();
    return;
  }
  flush();
  writeOut(data);
}

void OutputFile::flush() {
  writeOut(std::as_bytes(std::span(buffer_.data(), buffer_.size())));
  buffer_.clear();
}

void OutputFile::writeOut(std::span<const std::byte> data) {
  while (!data.empty()) {
    checkBudget();
    const ssize_t n = ::write(fd_, data.data(), std::min(data.size(), kPiece));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(errno);
    data = data.subspan(static_cast<size_t>(n));
    unsynced_ += static_cast<size_t>(n);
    if (unsynced_ < kSyncEvery || !replaces_) continue;
    unsynced_ = 0;
    // Only a hint: what it does not do, fsync does.
    ::sync_file_range(fd_, 0, 0, SYNC_FILE_RANGE_WRITE);
  }
}

// A file without a name cannot take the place of another one: it gets a name beside that, and is
// renamed at once.
void OutputFile::giveName() {
  const std::string from = nameOfDescriptor(fd_);
  if (::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, target_.c_str(), AT_SYMLINK_FOLLOW) == 0) return;
  const std::string folder = folderOf(target_);
  for (int i = 0; errno == EEXIST && i < kAttempts; ++i) {
    std::string name = temporaryName(folder);
    if (::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) != 0) continue;
    temporary_ = std::move(name);
    return;
  }
  fail(errno);
}

void OutputFile::commit() {
  WICK_ASSERT(fd_ >= 0, "{} is committed twice", path_);
  flush();
  if (!replaces_) {
    if (::close(std::exchange(fd_, -1)) != 0) fail(errno);
    return;
  }
  if (::fsync(fd_) != 0) fail(errno);
  if (temporary_.empty()) giveName();
  if (::close(std::exchange(fd_, -1)) != 0) fail(errno);
  if (!temporary_.empty() && ::rename(temporary_.c_str(), target_.c_str()) != 0) fail(errno);
  temporary_.clear();
  // The new name reaches the disk with its folder. A file system that cannot do that has no way to.
  const int folder = ::open(folderOf(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  ::fsync(folder);
  ::close(folder);
}

void writeFile(const std::string& path, std::string_view text) {
  OutputFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace wick
