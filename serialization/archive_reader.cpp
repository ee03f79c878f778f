#include "serialization/archive_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <new>

#include "core/budget.h"
#include "core/error.h"

namespace wick {
namespace {

static_assert(std::endian::native == std::endian::little,
              "archives are read as they lie in memory");

constexpr uint32_t kLocalHeader = 0x04034b50;
constexpr uint32_t kDirectoryHeader = 0x02014b50;
constexpr uint32_t kEndOfDirectory = 0x06054b50;
constexpr uint32_t kZip64EndOfDirectory = 0x06064b50;
constexpr uint32_t kZip64Locator = 0x07064b50;
constexpr uint64_t kLocalHeaderSize = 30;
constexpr uint64_t kDirectoryHeaderSize = 46;
constexpr uint64_t kEndOfDirectorySize = 22;
constexpr uint64_t kZip64EndOfDirectorySize = 56;
constexpr uint64_t kZip64LocatorSize = 20;
constexpr uint16_t kZip64Extra = 1;
constexpr uint16_t kEncrypted = 1;
constexpr uint16_t kStored = 0;
constexpr uint16_t kDeflated = 8;
constexpr size_t kAlignment = 64;
// Deflate cannot expand one byte to more than this many, so a larger claim is a lie.
constexpr uint64_t kMaxDeflateRatio = 1032;
// What an entry takes here: its name twice, a node of the table, its extent.
constexpr uint64_t kEntryMemory = 256;

// Says that a folder is none of the files that are read, and which of its files may be meant.
std::string folderReason(const std::string& path) {
  constexpr size_t kListed = 3;
  constexpr int kMostLooked = 10000;
  std::error_code error;
  namespace fs = std::filesystem;
  if (fs::exists(fs::path(path) / "saved_model.pb", error)) {
    return "Is a folder, a SavedModel of TensorFlow, which Wick does not run";
  }
  std::vector<std::string> models;
  int looked = 0;
  for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    if (++looked > kMostLooked) break;
    const std::string end_of_name = at->path().extension().string();
    if (end_of_name == ".pt" || end_of_name == ".pth") {
      models.push_back(at->path().filename().string());
    }
  }
  std::sort(models.begin(), models.end());
  const size_t listed = std::min(kListed, models.size());
  return fmt::format(
      "Is a folder, not a file{}{}{}", listed == 0 ? "" : "; it holds ",
      fmt::join(models.begin(), models.begin() + static_cast<ptrdiff_t>(listed), ", "),
      models.size() > listed ? " and others" : "");
}

class FileHandle {
 public:
  // A pipe is refused, not waited for.
  explicit FileHandle(const std::string& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (fd_ < 0) throw FileError(path, errno, std::strerror(errno));
    struct stat info;
    const bool known = ::fstat(fd_, &info) == 0;
    if (known && S_ISREG(info.st_mode)) {
      size_ = static_cast<size_t>(info.st_size);
      return;
    }
    ::close(fd_);
    if (known && S_ISDIR(info.st_mode)) throw FileError(path, EISDIR, folderReason(path));
    throw FileError(path, EINVAL, "not a regular file");
  }
  FileHandle(const FileHandle&) = delete;
  ~FileHandle() { ::close(fd_); }
  int fd() const { return fd_; }
  size_t size() const { return size_; }

 private:
  int fd_;
  size_t size_ = 0;
};

Bytes allocateBytes(size_t size) {
  void* memory = ::operator new(std::max<size_t>(size, 1), std::align_val_t(kAlignment));
  std::shared_ptr<void> owner(memory,
                              [](void* p) { ::operator delete(p, std::align_val_t(kAlignment)); });
  return {{static_cast<std::byte*>(memory), size}, std::move(owner)};
}

// A checksum that takes pieces of any size.
class Crc {
 public:
  void add(std::span<const std::byte> data) {
    for (size_t done = 0; done < data.size();) {
      const size_t n = std::min<size_t>(data.size() - done, kPiece);
      value_ =
          ::crc32(value_, reinterpret_cast<const Bytef*>(data.data() + done), static_cast<uInt>(n));
      done += n;
      checkBudget();
    }
  }
  uint32_t value() const { return static_cast<uint32_t>(value_); }

 private:
  static constexpr size_t kPiece = size_t{8} << 20;
  uLong value_ = ::crc32(0, nullptr, 0);
};

// Hands out what deflated bytes become, piece by piece, until `take` refuses one. Returns whether
// they ended as they should.
template <class Take>
bool inflatePieces(std::span<std::byte> packed, Take take) {
  constexpr size_t kPiece = size_t{64} << 10;
  const Bytes buffer = allocateBytes(kPiece);
  z_stream stream{};
  if (::inflateInit2(&stream, -MAX_WBITS) != Z_OK) return false;
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, &::inflateEnd);
  int status = Z_OK;
  size_t read = 0;
  while (status == Z_OK) {
    const size_t n = std::min<size_t>(packed.size() - read, UINT32_MAX);
    stream.next_in = reinterpret_cast<Bytef*>(packed.data() + read);
    stream.avail_in = static_cast<uInt>(n);
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data.data());
    stream.avail_out = kPiece;
    status = ::inflate(&stream, Z_NO_FLUSH);
    const size_t made = kPiece - stream.avail_out;
    const size_t used = n - stream.avail_in;
    read += used;
    if (!take(buffer.data.first(made))) return false;
    if (used == 0 && made == 0) break;
  }
  return status == Z_STREAM_END;
}

}  // namespace

FileError::FileError(std::string path, int code, std::string reason)
    : LoadError(fmt::format("{}: {}", path, reason)),
      path_(std::move(path)),
      code_(code),
      reason_(std::move(reason)) {}

FileError::~FileError() = default;

Bytes mapFile(const std::string& path) {
  FileHandle file(path);
  if (file.size() == 0) return {};
  void* memory = ::mmap(nullptr, file.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE,
                        file.fd(), 0);
  if (memory == MAP_FAILED) throwLoadError("{}: cannot map: {}", path, std::strerror(errno));
  size_t size = file.size();
  std::shared_ptr<void> owner(memory, [size](void* p) { ::munmap(p, size); });
  return {{static_cast<std::byte*>(memory), size}, std::move(owner)};
}

Bytes readFile(const std::string& path) {
  FileHandle file(path);
  Bytes bytes = allocateBytes(file.size());
  size_t done = 0;
  while (done < bytes.size()) {
    ssize_t n = ::read(file.fd(), bytes.data.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      throwLoadError("{}: cannot read: {}", path, n < 0 ? std::strerror(errno) : "short file");
    done += static_cast<size_t>(n);
  }
  return bytes;
}

Bytes copyBytes(std::span<const std::byte> data) {
  Bytes bytes = allocateBytes(data.size());
  std::copy(data.begin(), data.end(), bytes.data.begin());
  return bytes;
}

bool ArchiveReader::looksLikeZip(std::span<const std::byte> file) {
  uint32_t magic = 0;
  if (file.size() < sizeof(magic)) return false;
  std::memcpy(&magic, file.data(), sizeof(magic));
  return magic == kLocalHeader || magic == kEndOfDirectory;
}

ArchiveReader ArchiveReader::open(const std::string& path, Limits limits) {
  return ArchiveReader(mapFile(path), path, limits);
}

uint64_t ArchiveLimits::memoryFor(uint64_t file_size) const {
  uint64_t bytes = 0;
  const bool overflows = __builtin_mul_overflow(file_size, memory_ratio, &bytes) ||
                         __builtin_add_overflow(bytes, base_memory, &bytes);
  return overflows ? UINT64_MAX : bytes;
}

ArchiveReader::ArchiveReader(Bytes file, std::string name, Limits limits, Layout layout)
    : file_(std::move(file)),
      name_(std::move(name)),
      limits_(limits),
      budget_(std::make_shared<LoadBudget>(limits_.memoryFor(file_.size()))) {
  readDirectory(findDirectory(), layout);
}

void ArchiveReader::fail(const std::string& what) const {
  throwLoadError("{}: {}", name_, what);
}

void ArchiveReader::failRecord(std::string_view record, const std::string& what) const {
  throwLoadError("{}: record '{}': {}", name_, record, what);
}

template <class T>
T ArchiveReader::load(uint64_t offset) const {
  // Callers have looked whether it is there.
  WICK_ASSERT(offset <= file_.size() && file_.size() - offset >= sizeof(T),
              "{}: {} bytes at {} of {}", name_, sizeof(T), offset, file_.size());
  T value;
  std::memcpy(&value, file_.data.data() + offset, sizeof(T));
  return value;
}

ArchiveReader::Directory ArchiveReader::findDirectory() const {
  const uint64_t size = file_.size();
  if (size < kEndOfDirectorySize) fail("not a ZIP archive");
  // The end record is followed by a comment of at most 65535 bytes.
  const uint64_t last = size - kEndOfDirectorySize;
  const uint64_t first = last > 0xffff ? last - 0xffff : 0;
  uint64_t end = last + 1;
  for (uint64_t at = last + 1; at-- > first;) {
    if (load<uint32_t>(at) == kEndOfDirectory &&
        load<uint16_t>(at + 20) <= size - at - kEndOfDirectorySize) {
      end = at;
      break;
    }
  }
  if (end > last) fail("not a ZIP archive (no central directory; is the file complete?)");
  Directory directory{load<uint32_t>(end + 16), load<uint32_t>(end + 12), load<uint16_t>(end + 10)};
  if (end >= kZip64LocatorSize && load<uint32_t>(end - kZip64LocatorSize) == kZip64Locator) {
    const uint64_t at = load<uint64_t>(end - kZip64LocatorSize + 8);
    if (at > size || size - at < kZip64EndOfDirectorySize ||
        load<uint32_t>(at) != kZip64EndOfDirectory) {
      fail("the ZIP64 end record is not where the locator says");
    }
    directory = {load<uint64_t>(at + 48), load<uint64_t>(at + 40), load<uint64_t>(at + 32)};
  }
  if (directory.offset > size || directory.size > size - directory.offset) {
    fail("the central directory lies outside of the file");
  }
  if (directory.count > limits_.max_entries ||
      directory.count > directory.size / kDirectoryHeaderSize) {
    fail(fmt::format("the central directory claims {} entries", directory.count));
  }
  return directory;
}

void ArchiveReader::readDirectory(const Directory& directory, Layout layout) {
  uint64_t at = directory.offset;
  const uint64_t end = directory.offset + directory.size;
  std::vector<Extent> extents{{directory.offset, end}};
  extents.reserve(directory.count + 1);
  entries_.reserve(directory.count);
  for (uint64_t i = 0; i < directory.count; ++i) {
    if (end - at < kDirectoryHeaderSize || load<uint32_t>(at) != kDirectoryHeader) {
      fail(fmt::format("entry {} of the central directory is damaged", i));
    }
    Entry entry{load<uint32_t>(at + 42), load<uint32_t>(at + 20), load<uint32_t>(at + 24),
                load<uint32_t>(at + 16), load<uint16_t>(at + 10), load<uint16_t>(at + 8)};
    const uint64_t name_size = load<uint16_t>(at + 28);
    const uint64_t extra_size = load<uint16_t>(at + 30);
    const uint64_t comment_size = load<uint16_t>(at + 32);
    at += kDirectoryHeaderSize;
    if (end - at < name_size + extra_size + comment_size) {
      fail(fmt::format("entry {} of the central directory is damaged", i));
    }
    std::string_view path(reinterpret_cast<const char*>(file_.data.data() + at), name_size);
    readZip64Extra(path, at + name_size, extra_size, entry);
    extents.push_back(locate(path, entry));
    if (!budget_->take(kEntryMemory + 2 * name_size)) fail("the names of the entries are too long");
    at += name_size + extra_size + comment_size;
    std::string record(path);
    if (layout == Layout::OneFolder) {
      const size_t slash = path.find('/');
      if (i == 0) {
        if (slash == std::string_view::npos) fail("the entries lie in no folder");
        root_ = path.substr(0, slash);
      }
      if (slash == std::string_view::npos || path.substr(0, slash) != root_) continue;
      record = path.substr(slash + 1);
    }
    if (record.empty() || record.back() == '/') continue;
    if (!entries_.emplace(record, entry).second) failRecord(record, "appears twice");
    if (entry.method == kStored && record.ends_with(".pkl")) {
      budget_->giveBack(entry.compressed_size * limits_.pickle_ratio);
    }
    records_.push_back(std::move(record));
  }
  if (records_.empty()) fail("the archive holds no records");
  checkOverlap(std::move(extents));
}

// Where the entry's local header begins and its payload ends.
ArchiveReader::Extent ArchiveReader::locate(std::string_view path, Entry& entry) const {
  const uint64_t size = file_.size();
  const uint64_t header = entry.offset;
  if (header > size || size - header < kLocalHeaderSize || load<uint32_t>(header) != kLocalHeader) {
    failRecord(path, "the local header is not where the directory says");
  }
  const uint64_t name_size = load<uint16_t>(header + 26);
  entry.offset = header + kLocalHeaderSize + name_size + load<uint16_t>(header + 28);
  if (entry.offset > size || size - entry.offset < entry.compressed_size) {
    failRecord(path, "the payload lies outside of the file");
  }
  const std::string_view name = file_.text().substr(header + kLocalHeaderSize, name_size);
  if (name != path) failRecord(path, "the local header has another name");
  return {header, entry.offset + entry.compressed_size};
}

// Entries that share bytes would be a small file that unfolds to a large one.
void ArchiveReader::checkOverlap(std::vector<Extent> extents) const {
  std::sort(extents.begin(), extents.end(),
            [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < extents.size(); ++i) {
    if (extents[i].begin < extents[i - 1].end) fail("entries of the archive overlap");
  }
}

void ArchiveReader::readZip64Extra(std::string_view record, uint64_t offset, uint64_t length,
                                   Entry& entry) const {
  const uint64_t end = offset + length;
  while (end - offset >= 4) {
    const uint16_t id = load<uint16_t>(offset);
    const uint64_t size = load<uint16_t>(offset + 2);
    offset += 4;
    if (size > end - offset) failRecord(record, "the extra field is damaged");
    if (id == kZip64Extra) {
      uint64_t at = offset;
      // Only the fields that did not fit are present, in this order.
      for (uint64_t* field : {&entry.size, &entry.compressed_size, &entry.offset}) {
        if (*field != 0xffffffff) continue;
        if (offset + size - at < sizeof(uint64_t))
          failRecord(record, "the ZIP64 field is too short");
        *field = load<uint64_t>(at);
        at += sizeof(uint64_t);
      }
    }
    offset += size;
  }
}

bool ArchiveReader::has(std::string_view record) const {
  return entries_.contains(std::string(record));
}

const ArchiveReader::Entry& ArchiveReader::find(std::string_view record) const {
  auto it = entries_.find(std::string(record));
  if (it == entries_.end()) failRecord(record, "there is no such record");
  return it->second;
}

Bytes ArchiveReader::read(std::string_view record) {
  const Entry& entry = find(record);
  Bytes bytes = get(record, entry);
  Crc crc;
  crc.add(bytes.data);
  if (crc.value() != entry.crc) failRecord(record, "the checksum does not match");
  return bytes;
}

Bytes ArchiveReader::map(std::string_view record) {
  return get(record, find(record));
}

// The bytes as they lie in the file, of a method that is known.
std::span<std::byte> ArchiveReader::packed(std::string_view record, const Entry& entry) const {
  if ((entry.flags & kEncrypted) != 0) failRecord(record, "is encrypted");
  if (entry.method != kStored && entry.method != kDeflated) {
    failRecord(record, fmt::format("compression method {} is not supported", entry.method));
  }
  if (entry.method == kStored && entry.size != entry.compressed_size) {
    failRecord(record, "is stored with two sizes");
  }
  return file_.data.subspan(entry.offset, entry.compressed_size);
}

Bytes ArchiveReader::get(std::string_view record, const Entry& entry) {
  const std::span<std::byte> bytes = packed(record, entry);
  if (entry.method == kDeflated) return inflate(record, entry, bytes);
  return {bytes, file_.owner};
}

void ArchiveReader::verify(std::string_view record) const {
  const Entry& entry = find(record);
  const std::span<std::byte> bytes = packed(record, entry);
  Crc crc;
  uint64_t size = 0;
  const auto take = [&](std::span<const std::byte> piece) {
    size += piece.size();
    if (size <= entry.size) crc.add(piece);
    return size <= entry.size;
  };
  const bool complete = entry.method == kStored ? take(bytes) : inflatePieces(bytes, take);
  if (!complete || size != entry.size) failRecord(record, "the deflated data is damaged");
  if (crc.value() != entry.crc) failRecord(record, "the checksum does not match: it is damaged");
}

Bytes ArchiveReader::inflate(std::string_view record, const Entry& entry,
                             std::span<std::byte> packed) {
  if (packed.size() > UINT32_MAX || entry.size / kMaxDeflateRatio > packed.size() ||
      !budget_->take(entry.size)) {
    failRecord(record, fmt::format("claims {} bytes when inflated, which is more than the limit "
                                   "for an archive of {}",
                                   entry.size, file_.size()));
  }
  Bytes bytes = allocateBytes(entry.size);
  z_stream stream{};
  if (::inflateInit2(&stream, -MAX_WBITS) != Z_OK) failRecord(record, "zlib does not start");
  stream.next_in = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data.data());
  int status = Z_OK;
  uint64_t produced = 0;
  while (status == Z_OK) {
    const uint64_t room = std::min<uint64_t>(entry.size - produced, uint64_t{1} << 30);
    stream.avail_out = static_cast<uInt>(room);
    const uInt unread = stream.avail_in;
    status = ::inflate(&stream, Z_NO_FLUSH);
    produced += room - stream.avail_out;
    if (stream.avail_in == unread && stream.avail_out == room) break;
  }
  ::inflateEnd(&stream);
  if (status != Z_STREAM_END || produced != entry.size) {
    failRecord(record, "the deflated data is damaged");
  }
  return bytes;
}

void verifyRecords(const Bytes& file, const std::string& name, const ArchiveLimits& limits) {
  const ArchiveReader archive(file, name, limits, ArchiveReader::Layout::Flat);
  for (const std::string& record : archive.records()) archive.verify(record);
}

}  // namespace wick
