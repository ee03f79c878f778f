#include "frontend/broken_line.h"

#include <algorithm>

#include "frontend/lexer.h"

namespace wick::detail {

namespace {

constexpr size_t kNone = std::string_view::npos;
// Lines that are looked at to tell whether an open bracket is closed further down.
constexpr size_t kLinesAhead = 50;

bool isNameStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool isNamePart(char c) {
  return isNameStart(c) || (c >= '0' && c <= '9');
}

bool isOneOf(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Words that begin statements and stand in no expression, and those that may stand in one.
bool beginsStatement(std::string_view word) {
  return isOneOf(word, {"def", "class", "return", "raise", "assert", "pass", "break", "continue",
                        "del", "while", "with", "global", "import", "from", "elif"});
}
bool beginsHeader(std::string_view word) {
  return isOneOf(word, {"def", "class", "if", "elif", "else", "while", "for", "with"});
}

bool isKeyword(std::string_view word) {
  return beginsStatement(word) || beginsHeader(word) ||
         isOneOf(word, {"in", "not", "and", "or", "is", "as", "lambda", "None", "True", "False"});
}

class Text {
 public:
  explicit Text(std::string_view text) : text_(text) {}
  char at(size_t i) const { return i < text_.size() ? text_[i] : '\0'; }
  size_t size() const { return text_.size(); }

  std::string_view wordAt(size_t i) const {
    size_t end = i;
    if (isNameStart(at(i))) {
      while (isNamePart(at(end))) ++end;
    }
    return text_.substr(std::min(i, text_.size()), end - i);
  }

  size_t lineStart(size_t i) const {
    while (i > 0 && at(i - 1) != '\n') --i;
    return i;
  }

  // Past the token or character at `i`: strings and comments count as one, an unfinished string
  // ends with its line.
  size_t skip(size_t i) const {
    const char c = at(i);
    if (c == '#') return std::min(text_.find('\n', i), size());
    if (c == '\\') return std::min(i + (at(i + 1) == '\r' ? 3 : 2), size());
    if (c != '"' && c != '\'') return i + 1;
    const bool triple = at(i + 1) == c && at(i + 2) == c;
    for (size_t k = i + (triple ? 3 : 1); k < size(); ++k) {
      if (at(k) == '\\') {
        ++k;
      } else if (at(k) == '\n' && !triple) {
        return k;
      } else if (at(k) == c && (!triple || (at(k + 1) == c && at(k + 2) == c))) {
        return k + (triple ? 3 : 1);
      }
    }
    return size();
  }

  struct Line {
    size_t start;
    size_t text;  // the offset of its first character that is not a blank
    size_t column;
  };
  // The first line from the offset `i` on that holds anything; its text is size() when there is
  // none.
  Line lineFrom(size_t i) const {
    while (true) {
      Line line{i, i, 0};
      for (;; ++line.text) {
        const char c = at(line.text);
        if (c == '\t') {
          line.column = (line.column / Lexer::kTabWidth + 1) * Lexer::kTabWidth;
        } else if (c == ' ' || c == '\r' || c == '\f') {
          ++line.column;
        } else {
          break;
        }
      }
      if (line.text >= size()) return {size(), size(), 0};
      if (at(line.text) != '\n' && at(line.text) != '#') return line;
      i = std::min(text_.find('\n', line.text), size() - 1) + 1;
    }
  }

  // Whether the last character before the line break at `end` that is neither blank nor part of a
  // comment is a colon.
  bool endsWithColon(size_t start, size_t end) const {
    char last = '\0';
    for (size_t i = start; i < end; i = skip(i)) {
      const char c = at(i);
      if (c != ' ' && c != '\t' && c != '\r' && c != '#') last = c;
    }
    return last == ':';
  }

  // `name =` or `name, name =`, but no comparison.
  bool isAssignment(size_t i) const {
    while (isNamePart(at(i)) || at(i) == ' ' || at(i) == '.' || at(i) == ',') ++i;
    return at(i) == '=' && at(i + 1) != '=';
  }

  // Whether what follows from the line at `i` closes a bracket that it did not open, before a
  // statement begins; with `begins`, in this line.
  bool closesBracket(size_t i, bool begins) const {
    size_t depth = 0;
    for (size_t lines = 0; lines < (begins ? 1 : kLinesAhead); ++lines) {
      const Line line = lineFrom(i);
      if (begins) {
        // Looks at this line only.
      } else if (line.text >= size() || beginsStatement(wordAt(line.text)) ||
                 isAssignment(line.text)) {
        return false;
      }
      for (i = line.text; i < size() && at(i) != '\n'; i = skip(i)) {
        const char c = at(i);
        if (c == '(' || c == '[' || c == '{') ++depth;
        if ((c == ')' || c == ']' || c == '}') && depth-- == 0) return true;
      }
      if (i < size()) ++i;
    }
    return false;
  }

 private:
  std::string_view text_;
};

char openerOf(char closer) {
  return closer == ')' ? '(' : closer == ']' ? '[' : '{';
}

}  // namespace

BrokenLine findBrokenLine(std::string_view whole, size_t start, size_t error_at) {
  const Text text(whole);
  const Text::Line first = text.lineFrom(text.lineStart(start));
  const bool is_header = beginsHeader(text.wordAt(start));
  // What stands before the token that was refused, or before the line that begins with it, was
  // accepted.
  size_t accepted = error_at;
  if (const size_t error_line = text.lineStart(error_at);
      error_at < text.size() && text.lineFrom(error_line).text == error_at) {
    accepted = error_line;
  }
  std::vector<size_t> open;
  size_t line_start = start;
  size_t line_start_text = start;
  size_t after_opener = kNone;
  const auto opensBlock = [&](size_t line_end) {
    return is_header || text.endsWithColon(line_start, line_end);
  };
  for (size_t i = start; i < text.size();) {
    const char c = text.at(i);
    if (c == '(' || c == '[' || c == '{') {
      open.push_back(i);
    } else if (c == ')' || c == ']' || c == '}') {
      // A closer of another kind closes what it fits, and what was opened within.
      auto fits = std::find_if(open.rbegin(), open.rend(),
                               [&](size_t at) { return text.at(at) == openerOf(c); });
      if (fits != open.rend()) open.erase(std::prev(fits.base()), open.end());
    }
    if (c != '\n') {
      i = text.skip(i);
      continue;
    }
    const Text::Line next = text.lineFrom(i + 1);
    if (open.empty()) {
      // No line begins with a closing bracket.
      const char after = text.at(next.text);
      if (after != ')' && after != ']' && after != '}') return {i + 1, kNone, opensBlock(i)};
      i = line_start = next.start;
      continue;
    }
    if (next.text >= text.size()) break;
    if (next.column > first.column) {
      // The line that ends here is the last of the header, or belongs to a block whose first line
      // comes right after the bracket that swallowed the header's colon.
      const bool in_block = line_start != start && beginsHeader(text.wordAt(line_start_text));
      if (is_header && text.endsWithColon(line_start, i)) {
        return {in_block && after_opener != kNone ? after_opener : next.start, open.back(), true};
      }
      if (is_header && beginsStatement(text.wordAt(next.text))) {
        return {after_opener == kNone ? next.start : after_opener, open.back(), true};
      }
      if (after_opener == kNone) after_opener = next.start;
    } else {
      const std::string_view word = text.wordAt(next.text);
      const bool begins = beginsStatement(word) || beginsHeader(word) || text.at(next.text) == '@';
      const bool may_begin = next.start >= accepted && !word.empty();
      if ((begins || may_begin) && !text.closesBracket(next.start, begins)) {
        return {next.start, open.back(), opensBlock(i)};
      }
    }
    i = line_start = next.start;
    line_start_text = next.text;
  }
  return {text.size(), open.empty() ? kNone : open.back(), is_header};
}

std::vector<std::string> namesOfBrokenLine(std::string_view whole, size_t start) {
  const Text text(whole);
  std::vector<std::string> names;
  size_t i = start;
  for (size_t lines = 0; text.at(i) == '@' && lines < kLinesAhead; ++lines) {
    i = text.lineFrom(std::min(whole.find('\n', i), text.size())).text;
  }
  while (i < text.size()) {
    const char c = text.at(i);
    if (c == '(' || c == '=' || c == ':' || c == '\n') break;
    const std::string_view word = text.wordAt(i);
    if (!word.empty() && !isKeyword(word)) names.emplace_back(word);
    i = word.empty() ? text.skip(i) : i + word.size();
  }
  return names;
}

size_t nextTopLevelLine(std::string_view whole, size_t from) {
  const Text text(whole);
  const size_t margin = text.lineFrom(0).column;
  for (size_t i = from; i < text.size();) {
    i = std::min(whole.find('\n', i), text.size() - 1) + 1;
    const Text::Line line = text.lineFrom(i);
    const std::string_view word = text.wordAt(line.text);
    if (line.column <= margin && (!word.empty() || text.at(line.text) == '@') && word != "elif" &&
        word != "else") {
      return line.start;
    }
    i = line.text;
  }
  return text.size();
}

}  // namespace wick::detail
