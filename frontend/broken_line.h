// Where a line that could not be parsed ends, although its brackets may not tell.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace wick::detail {

struct BrokenLine {
  size_t end;        // where the next line begins, or the end of the text
  size_t unclosed;   // the offset of the innermost bracket that is open there, or npos
  bool opens_block;  // whether a block may follow: it is that of an `if`, say, or ends in a colon
};

// The logical line of `whole` that begins at `start` and was refused at `error_at` (the end of the
// text if its brackets swallowed all of it). While brackets are open, a line that stands no deeper
// than the first and begins a statement ends it, and so does the block after a header (`def f(x:`).
BrokenLine findBrokenLine(std::string_view whole, size_t start, size_t error_at);

// The names that a statement which was refused may have meant to define: those before its first
// `(`, `=` or `:`, of the line after its decorators.
std::vector<std::string> namesOfBrokenLine(std::string_view whole, size_t start);

// The first line after the one of `from` that stands no deeper than the text's first line and may
// begin a statement; the end of the text when there is none.
size_t nextTopLevelLine(std::string_view whole, size_t from);

}  // namespace wick::detail
