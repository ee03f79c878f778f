#include "serialization/archive_writer.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/budget.h"
#include "core/error.h"
#include "core/output_file.h"

namespace wick {
namespace {

constexpr uint64_t kArchiveWriterAlignment = 64;
constexpr uint64_t kMax32 = 0xffffffff;
constexpr uint16_t kUtf8Names = 1 << 11;
// What is checked and written at once, for the budget.
constexpr size_t kPiece = size_t{16} << 20;
// 1980-01-01: archives of equal contents are equal files.
constexpr uint16_t kDosDate = 0x21;

template <class T>
void put(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

uLong checksum(uLong crc, std::span<const std::byte> data) {
  for (size_t done = 0; done < data.size();) {
    checkBudget();
    const size_t n = std::min<size_t>(data.size() - done, kPiece);
    crc = ::crc32(crc, reinterpret_cast<const Bytef*>(data.data() + done), static_cast<uInt>(n));
    done += n;
  }
  return crc;
}

uint32_t clamp32(uint64_t value) {
  return static_cast<uint32_t>(std::min(value, kMax32));
}

// The part that local and directory headers share.
void putCommon(std::string& out, bool zip64, uint64_t size, uint32_t crc, size_t name_size,
               size_t extra_size) {
  put<uint16_t>(out, zip64 ? 45 : 20);
  put<uint16_t>(out, kUtf8Names);
  put<uint16_t>(out, 0);  // stored
  put<uint16_t>(out, 0);
  put<uint16_t>(out, kDosDate);
  put<uint32_t>(out, crc);
  put<uint32_t>(out, clamp32(size));
  put<uint32_t>(out, clamp32(size));
  put<uint16_t>(out, static_cast<uint16_t>(name_size));
  put<uint16_t>(out, static_cast<uint16_t>(extra_size));
}

}  // namespace

ArchiveWriter::ArchiveWriter(Sink sink, std::string root)
    : sink_(std::move(sink)), root_(std::move(root)) {}

ArchiveWriter ArchiveWriter::toFile(const std::string& path, std::string root) {
  auto file = std::make_shared<OutputFile>(path);
  ArchiveWriter writer([file](std::span<const std::byte> data) { file->write(data); },
                       std::move(root));
  writer.close_ = [file] { file->commit(); };
  return writer;
}

void ArchiveWriter::emit(std::span<const std::byte> data) {
  while (!data.empty()) {
    const size_t n = std::min(data.size(), kPiece);
    sink_(data.first(n));
    offset_ += n;
    data = data.subspan(n);
    if (!data.empty()) checkBudget();
  }
}

void ArchiveWriter::emit(const std::string& data) {
  emit(std::as_bytes(std::span(data.data(), data.size())));
}

void ArchiveWriter::write(const std::string& record, std::string_view text) {
  write(record, std::as_bytes(std::span(text.data(), text.size())));
}

void ArchiveWriter::write(const std::string& record, std::span<const std::byte> data) {
  write(record, std::span(&data, 1));
}

void ArchiveWriter::write(const std::string& record,
                          std::span<const std::span<const std::byte>> parts) {
  const std::string path = root_.empty() ? record : root_ + "/" + record;
  WICK_CHECK(path.size() <= 0x7fff, "save: the record name '{}...' is too long",
             record.substr(0, 80));
  WICK_CHECK(names_.insert(record).second, "save: record '{}' is written twice", record);
  uint64_t size = 0;
  uLong crc = ::crc32(0, nullptr, 0);
  for (const std::span<const std::byte> part : parts) {
    size += part.size();
    crc = checksum(crc, part);
  }
  Entry entry{path, offset_, size, static_cast<uint32_t>(crc)};
  const bool zip64 = entry.size >= kMax32;
  std::string extra;
  if (zip64) {
    put<uint16_t>(extra, 1);
    put<uint16_t>(extra, 16);
    put<uint64_t>(extra, entry.size);
    put<uint64_t>(extra, entry.size);
  }
  const uint64_t unpadded = offset_ + 30 + path.size() + extra.size() + 4;
  const uint64_t padding =
      (kArchiveWriterAlignment - unpadded % kArchiveWriterAlignment) % kArchiveWriterAlignment;
  extra += "FB";
  put<uint16_t>(extra, static_cast<uint16_t>(padding));
  extra.append(padding, 'Z');
  std::string header;
  put<uint32_t>(header, 0x04034b50);
  putCommon(header, zip64, entry.size, entry.crc, path.size(), extra.size());
  emit(header + path + extra);
  for (const std::span<const std::byte> part : parts) emit(part);
  entries_.push_back(std::move(entry));
}

std::string ArchiveWriter::contentId() const {
  // FNV-1a.
  constexpr uint64_t kBasis = 0xcbf29ce484222325, kPrime = 0x100000001b3;
  uint64_t names = kBasis, contents = kBasis;
  for (const Entry& entry : entries_) {
    // Without the root: files of equal records have one identity.
    const size_t start = root_.empty() ? 0 : root_.size() + 1;
    for (size_t i = start; i < entry.path.size(); ++i) {
      names = (names ^ static_cast<unsigned char>(entry.path[i])) * kPrime;
    }
    names *= kPrime;
    for (uint64_t rest = entry.crc, i = 0; i < sizeof(entry.crc); ++i, rest >>= 8) {
      contents = (contents ^ (rest & 0xff)) * kPrime;
    }
  }
  return fmt::format("{:020}{:020}", names, contents);
}

void ArchiveWriter::finish() {
  const uint64_t start = offset_;
  for (const Entry& entry : entries_) {
    std::string extra;
    if (entry.size >= kMax32) {
      put<uint64_t>(extra, entry.size);
      put<uint64_t>(extra, entry.size);
    }
    if (entry.offset >= kMax32) put<uint64_t>(extra, entry.offset);
    if (!extra.empty()) {
      std::string head;
      put<uint16_t>(head, 1);
      put<uint16_t>(head, static_cast<uint16_t>(extra.size()));
      extra.insert(0, head);
    }
    std::string header;
    put<uint32_t>(header, 0x02014b50);
    put<uint16_t>(header, 45);
    putCommon(header, !extra.empty(), entry.size, entry.crc, entry.path.size(), extra.size());
    put<uint16_t>(header, 0);  // comment
    put<uint16_t>(header, 0);  // disk
    put<uint16_t>(header, 0);  // internal attributes
    put<uint32_t>(header, 0);  // external attributes
    put<uint32_t>(header, clamp32(entry.offset));
    emit(header + entry.path + extra);
  }
  const uint64_t size = offset_ - start;
  const uint64_t count = entries_.size();
  std::string tail;
  if (start >= kMax32 || size >= kMax32 || count >= 0xffff) {
    const uint64_t end = offset_;
    put<uint32_t>(tail, 0x06064b50);
    put<uint64_t>(tail, 44);
    put<uint16_t>(tail, 45);
    put<uint16_t>(tail, 45);
    put<uint32_t>(tail, 0);
    put<uint32_t>(tail, 0);
    put<uint64_t>(tail, count);
    put<uint64_t>(tail, count);
    put<uint64_t>(tail, size);
    put<uint64_t>(tail, start);
    put<uint32_t>(tail, 0x07064b50);
    put<uint32_t>(tail, 0);
    put<uint64_t>(tail, end);
    put<uint32_t>(tail, 1);
  }
  put<uint32_t>(tail, 0x06054b50);
  put<uint16_t>(tail, 0);
  put<uint16_t>(tail, 0);
  put<uint16_t>(tail, static_cast<uint16_t>(std::min<uint64_t>(count, 0xffff)));
  put<uint16_t>(tail, static_cast<uint16_t>(std::min<uint64_t>(count, 0xffff)));
  put<uint32_t>(tail, clamp32(size));
  put<uint32_t>(tail, clamp32(start));
  put<uint16_t>(tail, 0);
  emit(tail);
  if (close_) close_();
}

}  // namespace wick
