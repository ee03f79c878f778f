#include "capture/bytecode/line_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>

namespace wick::capture {
namespace {

// Forms of an entry, bits 3 to 6 of its first byte. Below kOneLine the number is the start column
// divided by eight; kOneLine to kOneLine + 2 are lines that follow at this distance.
enum Form { kOneLine = 10, kNoColumns = 13, kLong = 14, kNoLocation = 15 };

constexpr size_t kMaxUnits = 8;  // that one entry can cover

class LineReader {
 public:
  explicit LineReader(std::string_view table) : table_(table) {}

  bool atEnd() const { return at_ == table_.size(); }
  size_t position() const { return at_; }

  [[noreturn]] void fail(const char* why) const {
    throw BytecodeError(fmt::format("line table, byte {} of {}: {}", at_, table_.size(), why));
  }
  // The first byte of an entry.
  uint8_t first() {
    const uint8_t byte = static_cast<uint8_t>(table_[at_]);
    if (byte < 128) fail("no entry begins here");
    ++at_;
    return byte;
  }
  uint8_t next() {
    if (atEnd()) fail("an entry is cut off");
    const uint8_t byte = static_cast<uint8_t>(table_[at_]);
    if (byte >= 128) fail("an entry begins within another");
    ++at_;
    return byte;
  }
  // Six bits a byte, the lowest first; bit 6 says that more follow.
  int64_t varint() {
    int64_t value = 0;
    for (int shift = 0;; shift += 6) {
      if (shift > 30) fail("a number is too long");
      const uint8_t byte = next();
      value |= static_cast<int64_t>(byte & 63) << shift;
      if ((byte & 64) == 0) return value;
    }
  }
  // The sign is the lowest bit.
  int64_t signedVarint() {
    const int64_t value = varint();
    return (value & 1) != 0 ? -(value >> 1) : value >> 1;
  }

 private:
  std::string_view table_;
  size_t at_ = 0;
};

// Reads the rest of an entry; `line` is the last known line, and becomes this one.
Location readLocation(LineReader& reader, int form, int64_t& line) {
  if (form == kNoLocation) return {};
  int64_t end_line = 0, column = -1, end_column = -1;
  if (form == kLong) {
    line += reader.signedVarint();
    end_line = line + reader.varint();
    column = reader.varint() - 1;
    end_column = reader.varint() - 1;
  } else if (form == kNoColumns) {
    line += reader.signedVarint();
    end_line = line;
  } else if (form >= kOneLine) {
    line += form - kOneLine;
    end_line = line;
    column = reader.next();
    end_column = reader.next();
  } else {
    const uint8_t low = reader.next();
    end_line = line;
    column = form * 8 + (low >> 4);
    end_column = column + (low & 15);
  }
  if (line < 0 || end_line > INT_MAX || column > INT_MAX || end_column > INT_MAX) {
    reader.fail("a line or column is out of range");
  }
  return {static_cast<int>(line), static_cast<int>(end_line), static_cast<int>(column),
          static_cast<int>(end_column)};
}

class LineWriter {
 public:
  explicit LineWriter(int first_line) : line_(first_line) {}

  void write(const Location& at, int units) {
    if (at.line < 0) {
      first(kNoLocation, units);
      return;
    }
    const int64_t distance = int64_t{at.line} - line_;
    const bool one_line = at.end_line == at.line || at.end_line < 0;
    const bool no_columns = at.column < 0 && at.end_column < 0;
    const bool columns = at.column >= 0 && at.end_column >= 0;
    line_ = at.line;
    if (no_columns && one_line) {
      first(kNoColumns, units);
      signedVarint(distance);
    } else if (columns && one_line && distance == 0 && at.column < 80 &&
               at.end_column >= at.column && at.end_column - at.column < 16) {
      first(at.column / 8, units);
      table_ += static_cast<char>((at.column % 8) << 4 | (at.end_column - at.column));
    } else if (columns && one_line && distance >= 0 && distance < 3 && at.column < 128 &&
               at.end_column < 128) {
      first(kOneLine + static_cast<int>(distance), units);
      table_ += static_cast<char>(at.column);
      table_ += static_cast<char>(at.end_column);
    } else {
      first(kLong, units);
      signedVarint(distance);
      varint(std::max<int64_t>(int64_t{at.end_line} - at.line, 0));
      varint(std::max(at.column, -1) + int64_t{1});
      varint(std::max(at.end_column, -1) + int64_t{1});
    }
  }
  std::string take() { return std::move(table_); }

 private:
  void first(int form, int units) { table_ += static_cast<char>(128 | form << 3 | (units - 1)); }
  void varint(int64_t value) {
    for (; value >= 64; value >>= 6) table_ += static_cast<char>((value & 63) | 64);
    table_ += static_cast<char>(value);
  }
  void signedVarint(int64_t value) { varint(value < 0 ? (-value << 1) | 1 : value << 1); }

  std::string table_;
  int line_;
};

}  // namespace

std::vector<Location> decodeLineTable(std::string_view table, int first_line, size_t units) {
  std::vector<Location> locations(units);
  LineReader reader(table);
  int64_t line = first_line;
  size_t at = 0;
  while (!reader.atEnd() && at < units) {
    const uint8_t first = reader.first();
    const size_t end = std::min(at + (first & 7) + 1, units);
    const Location location = readLocation(reader, (first >> 3) & 15, line);
    std::fill(locations.begin() + at, locations.begin() + end, location);
    at = end;
  }
  return locations;
}

std::string encodeLineTable(std::span<const Instruction> instructions, std::span<const int> sizes,
                            int first_line) {
  LineWriter writer(first_line);
  for (size_t i = 0; i < instructions.size(); ++i) {
    int left = sizes[i];
    for (; left > static_cast<int>(kMaxUnits); left -= kMaxUnits) {
      writer.write(instructions[i].location, kMaxUnits);
    }
    writer.write(instructions[i].location, left);
  }
  return writer.take();
}

}  // namespace wick::capture
