#include "extensions/text/pattern.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>

#include "core/budget.h"
#include "core/error.h"
#include "core/text_limit.h"

namespace wick::text {

namespace {

// The whole match and the groups that a replacement can name.
constexpr int kParts = 10;

RE2::Options options() {
  RE2::Options made;
  made.set_log_errors(false);
  made.set_max_mem(Pattern::kMostBytes);
  return made;
}

// The bytes of the character at `at`; one when it is not well formed.
size_t characterLength(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  const size_t length = first < 0x80   ? 1
                        : first < 0xC2 ? 1
                        : first < 0xE0 ? 2
                        : first < 0xF0 ? 3
                                       : 4;
  if (length == 1 || first > 0xF4 || at + length > text.size()) return 1;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return 1;
  }
  return length;
}

const std::string& checkedLength(const char* owner, const std::string& pattern) {
  WICK_CHECK(pattern.size() <= Pattern::kLongest,
             "{}: a pattern of {} bytes is too long; {} are allowed", owner, pattern.size(),
             Pattern::kLongest);
  return pattern;
}

// The length of what Rewrite() makes, which the pattern takes for right.
size_t rewrittenLength(std::string_view replacement, const re2::StringPiece* found) {
  size_t length = 0;
  for (size_t i = 0; i < replacement.size(); ++i) {
    if (replacement[i] != '\\') {
      ++length;
      continue;
    }
    const char named = replacement[++i];
    length += named == '\\' ? 1 : found[named - '0'].size();
  }
  return length;
}

}  // namespace

Pattern::Pattern(const char* owner, const std::string& pattern)
    : owner_(owner), compiled_(std::make_unique<RE2>(checkedLength(owner, pattern), options())) {
  WICK_CHECK(compiled_->ok(), "{}: the pattern '{}' cannot be read: {}", owner, pattern,
             compiled_->error());
}
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern::~Pattern() = default;

void Pattern::checkReplacement(const std::string& replacement) const {
  std::string wrong;
  WICK_CHECK(compiled_->CheckRewriteString(replacement, &wrong),
             "{}: the replacement '{}' does not suit the pattern '{}': {}", owner_, replacement,
             compiled_->pattern(), wrong);
}

// RE2 cannot be interrupted. It may look at each byte once for each instruction of the pattern, where
// groups are asked for or the states do not fit into its memory.
void Pattern::checkTime(size_t bytes) const {
  constexpr double kNanosecondsPerStep = 5;
  const Budget* budget = currentBudget();
  if (budget == nullptr) return;
  const double most = kNanosecondsPerStep * compiled_->ProgramSize() * static_cast<double>(bytes);
  if (most <= static_cast<double>(budget->timeLeft())) return;
  throw RuntimeError(
      fmt::format(
          "{}: a pattern of {} instructions might not be found in {} bytes before the run's "
          "time limit",
          owner_, compiled_->ProgramSize(), bytes),
      "TimeoutError");
}

std::string Pattern::replaceAll(const std::string& text, const std::string& replacement) const {
  checkReplacement(replacement);
  checkTime(text.size());
  const int parts = 1 + std::min(RE2::MaxSubmatch(replacement), kParts - 1);
  re2::StringPiece found[kParts];
  std::string result;
  Pace pace;
  size_t next = 0;         // what is copied or replaced so far
  size_t last = SIZE_MAX;  // where the match before ended
  while (next <= text.size() &&
         compiled_->Match(text, next, text.size(), RE2::UNANCHORED, found, parts)) {
    const auto start = static_cast<size_t>(found[0].data() - text.data());
    // The longest match is known only where the text ends or nothing can match any more.
    pace.step(static_cast<int64_t>(64 + text.size() - next));
    checkTime(text.size() - next);
    checkTextLength(owner_, result.size() + (start - next) + rewrittenLength(replacement, found));
    result.append(text, next, start - next);
    next = start;
    if (found[0].empty() && start == last) {
      // Nothing is found twice at one place: on to the next character.
      if (start == text.size()) return result;
      const size_t length = characterLength(text, start);
      result.append(text, start, length);
      next = start + length;
      continue;
    }
    compiled_->Rewrite(&result, replacement, found, parts);
    next = last = start + found[0].size();
  }
  result.append(text, std::min(next, text.size()), std::string::npos);
  checkTextLength(owner_, result.size());
  return result;
}

std::optional<std::string_view> Pattern::find(std::string_view text, size_t from) const {
  re2::StringPiece found;
  const re2::StringPiece rest(text.data() + from, text.size() - from);
  if (!compiled_->Match(rest, 0, rest.size(), RE2::UNANCHORED, &found, 1)) return std::nullopt;
  return std::string_view(found.data(), found.size());
}

}  // namespace wick::text
