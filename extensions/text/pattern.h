// Regular expressions of programs: RE2's, whose time is linear in the text whatever the pattern is.
// They have no lookahead and no references to groups within the pattern.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace re2 {
class RE2;
}

namespace wick::text {

// Thread-safe. Moved, not copied.
class Pattern {
 public:
  // What one pattern takes at most, with what it keeps of its matches.
  static constexpr int64_t kMostBytes = int64_t{2} << 20;
  // The longest pattern.
  static constexpr size_t kLongest = size_t{64} << 10;

  // RuntimeError that begins with `owner` for a pattern that RE2 cannot read.
  Pattern(const char* owner, const std::string& pattern);
  Pattern(Pattern&&) noexcept;
  ~Pattern();

  // RuntimeError for a replacement that names a group which the pattern does not have.
  void checkReplacement(const std::string& replacement) const;
  // `text` with all matches, from the left, replaced; \0 to \9 in the replacement are the match and
  // its groups. RuntimeError of class TimeoutError also when the run has a deadline (core/budget.h)
  // and the search might not end before it.
  std::string replaceAll(const std::string& text, const std::string& replacement) const;
  // The first match in what begins at `from`, as a part of `text`.
  std::optional<std::string_view> find(std::string_view text, size_t from) const;

 private:
  void checkTime(size_t bytes) const;

  const char* owner_;
  std::unique_ptr<re2::RE2> compiled_;
};

}  // namespace wick::text
