// The file: a header with the facts, then items. Each of these is a mark, a checksum, a length and its
// bytes.
#include "streams/processes/kept_items.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "core/budget.h"
#include "core/error.h"
#include "core/memory_limit.h"
#include "streams/parsed_json.h"
#include "streams/processes/packet_bytes.h"

namespace wick::streams {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::chrono::seconds kBetweenSyncs(1);
constexpr uint64_t kMostFacts = 1 << 20;  // bytes
constexpr uint64_t kPiece = 1 << 20;      // bytes

struct Head {
  char magic[8] = {'w', 'i', 'c', 'k', 'k', 'e', 'p', 't'};
  uint32_t version = 1;
  uint32_t checksum = 0;
  uint64_t length = 0;
};

// Of the bytes before, whose checksum is given, and these.
uint32_t checksumOf(std::string_view bytes, uint32_t before = 0) {
  return static_cast<uint32_t>(
      crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::string withHead(const std::string& bytes) {
  Head head;
  head.checksum = checksumOf(bytes);
  head.length = bytes.size();
  return std::string(reinterpret_cast<const char*>(&head), sizeof head) + bytes;
}

bool isOurs(const Head& head) {
  const Head expected;
  return std::memcmp(head.magic, expected.magic, sizeof expected.magic) == 0 &&
         head.version == expected.version;
}

}  // namespace

KeptItems::KeptItems(std::string path, const Facts& facts)
    : path_(std::move(path)), synced_(std::chrono::steady_clock::now()) {
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail("cannot be opened");
  try {
    if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) fail("cannot be locked");
      throw UsageError(fmt::format("{}: another process keeps its items there", path_));
    }
    recover(facts);
  } catch (...) {
    close(descriptor_);
    throw;
  }
}

KeptItems::~KeptItems() {
  close(descriptor_);
}

void KeptItems::recover(const Facts& facts) {
  Json told = Json::object();
  for (const auto& [name, value] : facts) told[name] = value;
  struct stat status {};
  if (fstat(descriptor_, &status) != 0) fail("cannot be read");
  if (!S_ISREG(status.st_mode)) throw UsageError(fmt::format("{}: not a regular file", path_));
  const auto size = static_cast<uint64_t>(status.st_size);
  // What is at the place, when it is whole; its head alone tells how long it would be.
  const auto whole = [&](uint64_t at) -> std::optional<Head> {
    Head head;
    if (size - at < sizeof head) return std::nullopt;
    const std::string bytes = bytesAt(at, sizeof head);
    std::memcpy(&head, bytes.data(), sizeof head);
    if (!isOurs(head) || head.length > size - at - sizeof head) return std::nullopt;
    return head;
  };
  // A process that dies while it writes the head leaves a part of it. What begins otherwise may hold
  // items of another version, or some that could be saved, so it is left alone.
  const std::string ours = withHead(told.dump(-1, ' ', false, Json::error_handler_t::replace));
  if (size < ours.size() && ours.starts_with(bytesAt(0, size))) {
    write(ours);
    begin_ = end_;
    return sync();
  }
  const std::optional<Head> first = whole(0);
  const std::string text =
      first && first->length <= kMostFacts ? bytesAt(sizeof(Head), first->length) : "";
  if (!first || checksumOf(text) != first->checksum) {
    throw UsageError(fmt::format("{}: not a file of kept items", path_));
  }
  const auto then = parsedJson<Json>(text, path_);
  for (const auto& [name, value] : told.items()) {
    // What the file does not tell was not asked for.
    const Json before = then.contains(name) ? then[name] : Json("");
    if (before == value) continue;
    throw UsageError(fmt::format("{}: its items were made with another {}: expected {}, found {}",
                                 path_, name, shownJson(value), shownJson(before)));
  }
  begin_ = end_ = sizeof(Head) + first->length;
  while (const std::optional<Head> item = whole(end_)) {
    // In pieces: the length is that of a whole item only if the checksum says so.
    uint32_t checksum = 0;
    for (uint64_t done = 0; done < item->length; done += kPiece) {
      checkBudget();
      const uint64_t length = std::min(kPiece, item->length - done);
      checksum = checksumOf(bytesAt(end_ + sizeof(Head) + done, length), checksum);
    }
    if (checksum != item->checksum) break;
    end_ += sizeof(Head) + item->length;
    ++count_;
  }
  if (end_ < size && ftruncate(descriptor_, static_cast<off_t>(end_)) != 0) {
    fail("cannot be written");
  }
}

void KeptItems::keep(const IValue& result) {
  write(withHead(valueBytes(result)));
  ++count_;
  if (std::chrono::steady_clock::now() - synced_ >= kBetweenSyncs) sync();
}

void KeptItems::sync() {
  if (fdatasync(descriptor_) != 0) fail("cannot be brought to the disk");
  synced_ = std::chrono::steady_clock::now();
}

std::vector<IValue> KeptItems::read(int64_t count) const {
  std::vector<IValue> items;
  uint64_t at = begin_;
  for (int64_t i = 0; i < std::min(count, count_); ++i) {
    checkBudget();
    Head head;
    std::memcpy(&head, bytesAt(at, sizeof head).data(), sizeof head);
    at += sizeof head;
    if (at > end_ || head.length > end_ - at) {
      throwRuntimeError("{}: it changed while it was read", path_);
    }
    checkAllocation("reading an item", head.length);
    items.push_back(valueOf(bytesAt(at, head.length), fmt::format("{}, item {}", path_, i)));
    at += head.length;
  }
  return items;
}

std::string KeptItems::bytesAt(uint64_t offset, uint64_t length) const {
  std::string bytes(length, '\0');
  for (uint64_t done = 0; done < length;) {
    const ssize_t n =
        pread(descriptor_, bytes.data() + done, length - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("cannot be read");
    if (n == 0) throwRuntimeError("{}: it became shorter while it was read", path_);
    done += static_cast<uint64_t>(n);
  }
  return bytes;
}

void KeptItems::write(const std::string& bytes) {
  for (uint64_t done = 0; done < bytes.size();) {
    const ssize_t n = pwrite(descriptor_, bytes.data() + done, bytes.size() - done,
                             static_cast<off_t>(end_ + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("cannot be written");
    done += static_cast<uint64_t>(n);
  }
  end_ += bytes.size();
}

void KeptItems::fail(const char* what) const {
  throwRuntimeError("{}: {}: {}", path_, what, std::strerror(errno));
}

std::string fileMark(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  WICK_CHECK(descriptor >= 0, "{}: cannot be opened: {}", path, std::strerror(errno));
  std::string piece(size_t{1} << 20, '\0');
  uint32_t checksum = 0;
  uint64_t bytes = 0;
  ssize_t n = 0;
  while ((n = ::read(descriptor, piece.data(), piece.size())) > 0) {
    checksum = static_cast<uint32_t>(
        crc32_z(checksum, reinterpret_cast<const Bytef*>(piece.data()), static_cast<size_t>(n)));
    bytes += static_cast<uint64_t>(n);
  }
  const int wrong = errno;
  close(descriptor);
  WICK_CHECK(n == 0, "{}: cannot be read: {}", path, std::strerror(wrong));
  return fmt::format("{} bytes, {:08x}", bytes, checksum);
}

}  // namespace wick::streams
