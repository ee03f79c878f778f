#include "capture/bytecode/exception_table.h"

#include <fmt/format.h>

#include <climits>

namespace wick::capture {
namespace {

constexpr uint8_t kEntryBegins = 128;
constexpr uint8_t kMoreFollows = 64;

class ExceptionReader {
 public:
  explicit ExceptionReader(std::string_view table) : table_(table) {}

  bool atEnd() const { return at_ == table_.size(); }

  [[noreturn]] void fail(const char* why) const {
    throw BytecodeError(fmt::format("exception table, byte {} of {}: {}", at_, table_.size(), why));
  }
  // Six bits a byte, the highest first. The first number of an entry, and no other, has a mark.
  int number(bool begins) {
    int64_t value = 0;
    for (bool more = true; more; begins = false) {
      if (atEnd()) fail("an entry is cut off");
      const uint8_t byte = static_cast<uint8_t>(table_[at_]);
      if (((byte & kEntryBegins) != 0) != begins) fail("an entry begins wrongly");
      ++at_;
      value = value << 6 | (byte & 63);
      if (value > INT_MAX) fail("a number is too large");
      more = (byte & kMoreFollows) != 0;
    }
    return static_cast<int>(value);
  }

 private:
  std::string_view table_;
  size_t at_ = 0;
};

void writeNumber(std::string& table, uint32_t value, uint8_t mark) {
  int shift = 0;
  while (shift < 30 && value >> (shift + 6) != 0) shift += 6;
  for (; shift >= 0; shift -= 6) {
    const uint8_t more = shift > 0 ? kMoreFollows : 0;
    table += static_cast<char>(((value >> shift) & 63) | more | mark);
    mark = 0;
  }
}

}  // namespace

std::vector<ExceptionRange> decodeExceptionTable(std::string_view table,
                                                 std::span<const int> index_at) {
  std::vector<ExceptionRange> ranges;
  ExceptionReader reader(table);
  const auto indexAt = [&](int64_t unit) {
    if (unit >= static_cast<int64_t>(index_at.size()) || index_at[unit] < 0) {
      reader.fail("no instruction begins at this offset");
    }
    return index_at[unit];
  };
  while (!reader.atEnd()) {
    ExceptionRange range;
    const int start = reader.number(true);
    const int length = reader.number(false);
    const int target = reader.number(false);
    const int depth_and_lasti = reader.number(false);
    range.start = indexAt(start);
    range.end = indexAt(int64_t{start} + length);
    range.target = indexAt(target);
    range.depth = depth_and_lasti >> 1;
    range.lasti = (depth_and_lasti & 1) != 0;
    if (length == 0) reader.fail("a range is empty");
    if (!ranges.empty() && range.start < ranges.back().end) {
      reader.fail("a range overlaps the one before");
    }
    ranges.push_back(range);
  }
  return ranges;
}

std::string encodeExceptionTable(std::span<const ExceptionRange> ranges,
                                 std::span<const int> starts) {
  std::string table;
  for (const ExceptionRange& range : ranges) {
    const int start = starts[range.start];
    writeNumber(table, start, kEntryBegins);
    writeNumber(table, starts[range.end] - start, 0);
    writeNumber(table, starts[range.target], 0);
    writeNumber(table, static_cast<uint32_t>(range.depth) << 1 | (range.lasti ? 1 : 0), 0);
  }
  return table;
}

}  // namespace wick::capture
