#include "core/source_range.h"

#include <fmt/format.h>

#include <algorithm>

namespace wick {

namespace {
// Lines of context shown before the marked one.
constexpr int kContextLines = 2;
// Longer lines are cut so that a generated one-line program does not flood the terminal.
constexpr size_t kMaxShownLine = 400;
}  // namespace

Source::Source(std::string text, std::string name, size_t first_line)
    : text_(std::move(text)), name_(std::move(name)), first_line_(first_line) {}

size_t Source::lineNumber(size_t offset) const {
  offset = std::min(offset, text_.size());
  return first_line_ + std::count(text_.begin(), text_.begin() + offset, '\n');
}

size_t Source::lineStart(size_t offset) const {
  offset = std::min(offset, text_.size());
  if (offset == 0) return 0;
  size_t newline = text_.rfind('\n', offset - 1);
  return newline == std::string::npos ? 0 : newline + 1;
}

size_t Source::lineEnd(size_t offset) const {
  size_t newline = text_.find('\n', std::min(offset, text_.size()));
  return newline == std::string::npos ? text_.size() : newline;
}

std::string_view SourceRange::text() const {
  if (!source_) return {};
  std::string_view all = source_->text();
  size_t start = std::min(start_, all.size());
  return all.substr(start, std::min(end_, all.size()) - start);
}

std::string SourceRange::location() const {
  if (!source_) return "";
  return fmt::format("{}:{}:{}", source_->name(), source_->lineNumber(start_),
                     start_ - source_->lineStart(start_) + 1);
}

std::string SourceRange::highlight() const {
  if (!source_) return "";
  std::string_view all = source_->text();
  size_t line_start = source_->lineStart(start_);
  size_t line_end = source_->lineEnd(start_);
  size_t context_start = line_start;
  for (int i = 0; i < kContextLines && context_start > 0; ++i) {
    context_start = source_->lineStart(context_start - 1);
  }
  std::string out =
      fmt::format("  File \"{}\", line {}\n", source_->name(), source_->lineNumber(start_));
  for (size_t at = context_start; at <= line_start;) {
    size_t end = source_->lineEnd(at);
    out += fmt::format("    {}\n", all.substr(at, std::min(end - at, kMaxShownLine)));
    at = end + 1;
  }
  size_t column = start_ - line_start;
  if (column > kMaxShownLine) return out;
  size_t marked_end = std::min(std::max(end_, start_ + 1), std::max(line_end, start_ + 1));
  size_t width = std::min(marked_end - start_, kMaxShownLine - column + 1);
  out += fmt::format("    {}{} <--- HERE\n", std::string(column, ' '), std::string(width, '~'));
  return out;
}

SourceRange SourceRange::cover(const SourceRange& a, const SourceRange& b) {
  if (!a.valid()) return b;
  if (!b.valid()) return a;
  return SourceRange(a.source_, std::min(a.start_, b.start_), std::max(a.end_, b.end_));
}

}  // namespace wick
