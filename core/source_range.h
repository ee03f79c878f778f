// Where a piece of program text came from, and how to show it to its author.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#pragma GCC visibility push(default)

namespace wick {

// The text of one program with the name under which its author knows it. Immutable once built, and
// shared by every SourceRange that points into it.
class Source {
 public:
  // `first_line` is the 1-based number of the text's first line within the file called `name`.
  explicit Source(std::string text, std::string name = "<string>", size_t first_line = 1);

  std::string_view text() const { return text_; }
  const std::string& name() const { return name_; }

  // 1-based line number (counted from first_line) of the byte at `offset`.
  size_t lineNumber(size_t offset) const;
  // Offset of the first byte of the line that holds `offset`, and one past its last (newline
  // excluded).
  size_t lineStart(size_t offset) const;
  size_t lineEnd(size_t offset) const;

 private:
  std::string text_;
  std::string name_;
  size_t first_line_;
};

// A half-open range of bytes [start, end) in a Source. Cheap to copy. A default-constructed range
// belongs to no source and prints as nothing.
class SourceRange {
 public:
  SourceRange() = default;
  SourceRange(std::shared_ptr<const Source> source, size_t start, size_t end)
      : source_(std::move(source)), start_(start), end_(end) {}

  const std::shared_ptr<const Source>& source() const { return source_; }
  size_t start() const { return start_; }
  size_t end() const { return end_; }
  bool valid() const { return source_ != nullptr; }
  std::string_view text() const;

  // "file.py:12:5", or "" for a range without source.
  std::string location() const;
  // The location and the source lines around the range, with a caret line under it:
  //   File "file.py", line 12
  //     y = x + z
  //             ~ <--- HERE
  std::string highlight() const;

  // The smallest range that covers both. Both must be of one source.
  static SourceRange cover(const SourceRange& a, const SourceRange& b);

 private:
  std::shared_ptr<const Source> source_;
  size_t start_ = 0;
  size_t end_ = 0;
};

}  // namespace wick

#pragma GCC visibility pop
