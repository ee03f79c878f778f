#include "core/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
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

std::string behindLinks(const std::string& path) {
  // A link that leads nowhere yet is followed by the system when the file is created.
  char* real = ::realpath(path.c_str(), nullptr);
  if (real == nullptr) return path;
  std::string result(real);
  std::free(real);
  return result;
}

std::string folderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// A new file in the folder, with the permissions that the process gives new files.
int openTemporary(const std::string& folder, std::string& path) {
  static std::atomic<uint64_t> count{0};
  constexpr int kAttempts = 1000;  // files of that name may have been left by dead processes
  for (int i = 0; i < kAttempts; ++i) {
    path = fmt::format("{}/.wick-{}-{}.tmp", folder, ::getpid(), count++);
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

}  // namespace

OutputFile::OutputFile(std::string path) : path_(std::move(path)), target_(behindLinks(path_)) {
  struct stat info {};
  const bool exists = ::stat(target_.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) fail(EISDIR);
  if (exists && !S_ISREG(info.st_mode)) {
    fd_ = ::open(target_.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd_ < 0) fail(errno);
    return;
  }
  if (path_.empty() || path_.back() == '/') fail(path_.empty() ? ENOENT : EISDIR);
  // A file that may not be written is not replaced either.
  if (exists && ::access(target_.c_str(), W_OK) != 0) fail(errno);
  fd_ = openTemporary(folderOf(target_), temporary_);
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
    if (unsynced_ < kSyncEvery || temporary_.empty()) continue;
    unsynced_ = 0;
    // Only a hint: what it does not do, fsync does.
    ::sync_file_range(fd_, 0, 0, SYNC_FILE_RANGE_WRITE);
  }
}

void OutputFile::commit() {
  WICK_ASSERT(fd_ >= 0, "{} is committed twice", path_);
  flush();
  if (temporary_.empty()) {
    if (::close(std::exchange(fd_, -1)) != 0) fail(errno);
    return;
  }
  if (::fsync(fd_) != 0) fail(errno);
  if (::close(std::exchange(fd_, -1)) != 0) fail(errno);
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail(errno);
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
