#include "frontend/lexer.h"

#include <algorithm>
#include <unordered_map>

#include "core/error.h"

namespace wick {

namespace {

// Longer tokens are cut in messages.
constexpr size_t kMaxShownToken = 40;

bool isDigit(char c) {
  return c >= '0' && c <= '9';
}
bool isAsciiLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool isBlank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\f';
}

bool isDigitOf(char c, int base) {
  if (base == 16) return isDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
  return c >= '0' && c < '0' + base;
}

// The number of bytes of the non-ASCII UTF-8 character at `at` if an identifier may hold it, or 0.
// Which letters Unicode allows is not looked up; the blocks of punctuation where typographic
// quotes, dashes and odd spaces come from are left out, since there they would hide a typing error.
size_t unicodeLetter(std::string_view text, size_t at, size_t end) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  size_t length = 0;
  uint32_t code = 0;
  if (byte(0) >= 0xc2 && byte(0) < 0xe0) {
    length = 2;
    code = byte(0) & 0x1f;
  } else if (byte(0) >= 0xe0 && byte(0) < 0xf0) {
    length = 3;
    code = byte(0) & 0x0f;
  } else if (byte(0) >= 0xf0 && byte(0) < 0xf5) {
    length = 4;
    code = byte(0) & 0x07;
  } else {
    return 0;
  }
  if (length > end - at) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3f);
  }
  bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  bool surrogate = code >= 0xd800 && code < 0xe000;
  bool punctuation = (code < 0xc0 && code != 0xaa && code != 0xb5 && code != 0xba) ||
                     (code >= 0x2000 && code < 0x2070) || (code >= 0x3000 && code < 0x3004) ||
                     code == 0xfeff;
  if (overlong || surrogate || punctuation || code > 0x10ffff) return 0;
  return length;
}

struct FixedTokens {
  std::unordered_map<std::string_view, int> keywords;
  std::unordered_map<std::string_view, int> operators;  // of two and three characters
};

const FixedTokens& fixedTokens() {
  static const FixedTokens* tokens = [] {
    auto* result = new FixedTokens();
    auto add = [&](int kind, std::string_view spelling) {
      if (spelling.empty()) return;
      auto& map = isAsciiLetter(spelling[0]) ? result->keywords : result->operators;
      map.emplace(spelling, kind);
    };
#define WICK_ADD_TOKEN(kind, name, spelling) add(kind, spelling);
    WICK_FORALL_TOKEN_KINDS(WICK_ADD_TOKEN)
#undef WICK_ADD_TOKEN
    return result;
  }();
  return *tokens;
}

// '?' and '!' are for operator schemas; programs have no use for them.
constexpr std::string_view kOneCharacterTokens = "+-*/%@&|^~<>=()[]{},:.;?!";

std::string printable(char c) {
  auto byte = static_cast<unsigned char>(c);
  if (byte < 0x20 || byte >= 0x7f) return fmt::format("\\x{:02x}", byte);
  return std::string(1, c);
}

char closerOf(char opener) {
  return opener == '(' ? ')' : opener == '[' ? ']' : '}';
}

}  // namespace

std::string kindToString(int kind) {
  switch (kind) {
#define WICK_NAME_KIND(kind, name, spelling) \
  case kind:                                 \
    return name;
    WICK_FORALL_TOKEN_KINDS(WICK_NAME_KIND)
#undef WICK_NAME_KIND
    default:
      if (kind > ' ' && kind < 0x7f) return std::string(1, static_cast<char>(kind));
      return fmt::format("kind {}", kind);
  }
}

std::string Token::describe() const {
  switch (kind) {
    case TK_EOF:
      return "the end of the text";
    case TK_NEWLINE:
      return "the end of the line";
    case TK_INDENT:
      return "an indented line";
    case TK_DEDENT:
      return "the end of the block";
    default:
      break;
  }
  std::string shown(text().substr(0, kMaxShownToken));
  if (shown.size() < text().size()) shown += "...";
  if (kind == TK_IDENT) return fmt::format("identifier '{}'", shown);
  if (kind == TK_NUMBER) return fmt::format("number {}", shown);
  if (kind == TK_STRINGLITERAL) return fmt::format("string {}", shown);
  return fmt::format("'{}'", shown);
}

Lexer::Lexer(std::shared_ptr<const Source> source, Mode mode)
    : Lexer(source, 0, source->text().size(), mode) {}

Lexer::Lexer(std::shared_ptr<const Source> source, size_t start, size_t end, Mode mode)
    : source_(std::move(source)), text_(source_->text()), mode_(mode) {
  end_ = std::min(end, text_.size());
  pos_ = std::min(start, end_);
  if (pos_ == 0 && text_.substr(0, end_).starts_with("\xef\xbb\xbf"))
    pos_ = 3;  // a byte order mark
  at_line_start_ = mode == Mode::kProgram;
}

bool Token::isWord() const {
  if (kind == TK_IDENT) return true;
  if (kind == TK_NEWLINE || kind == TK_INDENT || kind == TK_DEDENT || kind == TK_EOF) return false;
  const auto belongs = [](char c) { return c == '_' || isDigit(c) || isAsciiLetter(c); };
  const std::string_view word = text();
  return !word.empty() && !isDigit(word[0]) && std::ranges::all_of(word, belongs);
}

void Lexer::takeAsIdentifier() {
  cur_->kind = TK_IDENT;
}

const Token& Lexer::cur() {
  if (!cur_) cur_ = lex();
  return *cur_;
}

const Token& Lexer::lookahead() {
  cur();
  if (!ahead_) ahead_ = lex();
  return *ahead_;
}

Token Lexer::next() {
  cur();
  Token result = std::move(*cur_);
  cur_ = std::move(ahead_);
  ahead_.reset();
  return result;
}

bool Lexer::nextIf(int kind) {
  if (cur().kind != kind) return false;
  next();
  return true;
}

Token Lexer::expect(int kind) {
  if (cur().kind != kind) {
    Token wanted;
    wanted.kind = kind;
    std::string name = kind == TK_IDENT                    ? "an identifier"
                       : kind == TK_STRINGLITERAL          ? "a string"
                       : kind == TK_NUMBER                 ? "a number"
                       : kind >= TK_EOF && kind < TK_IDENT ? wanted.describe()
                                                           : "'" + kindToString(kind) + "'";
    throwCompileError(cur().range, "expected {} but found {}", name, cur().describe());
  }
  return next();
}

void Lexer::resume(size_t line_start, size_t level) {
  cur_.reset();
  ahead_.reset();
  brackets_.clear();
  pending_dedents_ = 0;
  line_has_token_ = false;
  type_comment_ = SourceRange();
  indents_.resize(std::min(level, indents_.size()));
  at_line_start_ = true;
  pos_ = std::min(line_start, end_);
}

void Lexer::fail(size_t start, size_t end, const std::string& message) const {
  throw CompileError(SourceRange(source_, start, end), message);
}

Token Lexer::make(int kind, size_t start, size_t end) {
  Token token;
  token.kind = kind;
  token.range = SourceRange(source_, start, end);
  token.type_comment = std::move(type_comment_);
  type_comment_ = SourceRange();
  return token;
}

// At a '#': moves to the end of the line and keeps a type comment.
void Lexer::skipComment() {
  size_t start = pos_;
  pos_ = std::min(text_.find('\n', pos_), end_);
  auto skipSpace = [&](size_t at) {
    while (at < pos_ && isBlank(text_[at])) ++at;
    return at;
  };
  size_t at = skipSpace(start + 1);
  if (text_.substr(at, pos_ - at).substr(0, 5) != "type:") return;
  at = skipSpace(at + 5);
  size_t last = pos_;
  while (last > at && isBlank(text_[last - 1])) --last;
  std::string_view type = text_.substr(at, last - at);
  bool ignore = type.starts_with("ignore") &&
                (type.size() == 6 || !(isAsciiLetter(type[6]) || isDigit(type[6])));
  if (ignore || type.empty() || type_comment_.valid()) return;
  type_comment_ = SourceRange(source_, at, last);
}

// Skips blanks, comments, continued lines and, where they do not matter, newlines. True when it
// stopped at a newline that matters.
bool Lexer::skipBlank() {
  while (pos_ < end_) {
    char c = text_[pos_];
    if (isBlank(c)) {
      ++pos_;
    } else if (c == '#') {
      skipComment();
    } else if (c == '\n') {
      if (mode_ == Mode::kProgram && brackets_.empty()) return true;
      ++pos_;
    } else if (c == '\\') {
      size_t after = pos_ + 1;
      if (peek(after) == '\r') ++after;
      if (peek(after) != '\n') {
        fail(pos_, pos_ + 1, "unexpected character after the line continuation character '\\'");
      }
      pos_ = after + 1;
    } else {
      return false;
    }
  }
  return false;
}

Token Lexer::lex() {
  if (pending_dedents_ > 0) {
    --pending_dedents_;
    return make(TK_DEDENT, pos_, pos_);
  }
  while (true) {
    if (at_line_start_) {
      Token token = lexIndentation();
      if (token.kind != TK_NEWLINE) return token;
    }
    if (!skipBlank()) break;
    size_t start = pos_++;
    at_line_start_ = true;
    if (!line_has_token_) continue;  // continued lines without anything on them
    line_has_token_ = false;
    return make(TK_NEWLINE, start, start + 1);
  }
  if (pos_ >= end_) {
    if (!brackets_.empty()) {
      size_t opener = brackets_.back();
      fail(opener, opener + 1, fmt::format("'{}' was never closed", text_[opener]));
    }
    if (line_has_token_ && mode_ == Mode::kProgram) {
      line_has_token_ = false;
      at_line_start_ = true;
      return make(TK_NEWLINE, end_, end_);
    }
    return make(TK_EOF, end_, end_);
  }
  line_has_token_ = true;
  return lexInLine(pos_);
}

// At the start of a line: skips lines without tokens, compares the indentation with the open
// blocks. Returns TK_INDENT, TK_DEDENT, TK_EOF, or TK_NEWLINE for "no token, go on".
Token Lexer::lexIndentation() {
  size_t column = 0;
  while (true) {
    column = 0;
    for (; pos_ < end_ && isBlank(text_[pos_]); ++pos_) {
      char c = text_[pos_];
      column = c == '\t'   ? (column / Lexer::kTabWidth + 1) * Lexer::kTabWidth
               : c == '\f' ? 0
                           : column + 1;
    }
    if (peek(pos_) == '#') skipComment();
    if (pos_ >= end_) break;
    if (text_[pos_] != '\n') break;
    ++pos_;
  }
  at_line_start_ = false;
  if (pos_ >= end_) {
    if (indents_.size() > 1) {
      pending_dedents_ = indents_.size() - 2;
      indents_.resize(1);
      return make(TK_DEDENT, end_, end_);
    }
    return make(TK_EOF, end_, end_);
  }
  if (indents_.empty()) indents_.push_back(column);
  if (column > indents_.back()) {
    indents_.push_back(column);
    return make(TK_INDENT, pos_, pos_);
  }
  size_t closed = 0;
  while (!indents_.empty() && column < indents_.back()) {
    indents_.pop_back();
    ++closed;
  }
  if (indents_.empty() || indents_.back() != column) {
    // After this error the line counts as one of the outermost block that it is left of, whose
    // other lines may stand below it just like this one.
    indents_.push_back(column);
    pending_dedents_ = closed - 1;
    line_has_token_ = false;
    repaired_ = true;
    fail(pos_, pos_ + 1, "the indentation matches no outer indentation level");
  }
  if (closed > 0) {
    pending_dedents_ = closed - 1;
    return make(TK_DEDENT, pos_, pos_);
  }
  Token none;
  none.kind = TK_NEWLINE;
  return none;
}

Token Lexer::lexInLine(size_t start) {
  char c = text_[start];
  if (isDigit(c) || (c == '.' && isDigit(peek(start + 1)))) return lexNumber(start);
  if (c == '"' || c == '\'') return lexString(start, start);
  if (isAsciiLetter(c) ||
      (static_cast<unsigned char>(c) >= 0x80 && unicodeLetter(text_, start, end_))) {
    return lexIdentifier(start);
  }
  return lexOperator(start);
}

size_t Lexer::identifierEnd(size_t start) const {
  size_t at = start;
  while (at < end_) {
    char c = text_[at];
    if (isAsciiLetter(c) || isDigit(c)) {
      ++at;
    } else if (static_cast<unsigned char>(c) >= 0x80) {
      size_t length = unicodeLetter(text_, at, end_);
      if (length == 0) break;
      at += length;
    } else {
      break;
    }
  }
  return at;
}

Token Lexer::lexIdentifier(size_t start) {
  size_t end = identifierEnd(start);
  std::string_view word = text_.substr(start, end - start);
  if (word.size() <= 2 && (peek(end) == '"' || peek(end) == '\'')) {
    auto isPrefix = [&](char c) { return std::string_view("rRuUbBfF").find(c) != word.npos; };
    if (std::all_of(word.begin(), word.end(), isPrefix)) return lexString(start, end);
  }
  auto keyword = fixedTokens().keywords.find(word);
  pos_ = end;
  return make(keyword == fixedTokens().keywords.end() ? TK_IDENT : keyword->second, start, end);
}

// Finds the end of a string whose opening quote is at `quote`; the parser decodes it.
Token Lexer::lexString(size_t start, size_t quote) {
  char mark = text_[quote];
  bool triple = peek(quote + 1) == mark && peek(quote + 2) == mark;
  size_t at = quote + (triple ? 3 : 1);
  while (at < end_) {
    char c = text_[at];
    if (c == '\\') {
      at += peek(at + 1) == '\r' && peek(at + 2) == '\n' ? 3 : 2;
    } else if (c == '\n' && !triple) {
      break;
    } else if (c == mark && (!triple || (peek(at + 1) == mark && peek(at + 2) == mark))) {
      pos_ = at + (triple ? 3 : 1);
      return make(TK_STRINGLITERAL, start, pos_);
    } else {
      ++at;
    }
  }
  fail(start, quote + (triple ? 3 : 1),
       triple ? "this triple-quoted string is never closed"
              : "this string is not closed before the end of its line");
}

// Past digits of the base with single underscores between them.
size_t Lexer::digitsEnd(size_t at, int base) const {
  while (isDigitOf(peek(at), base) ||
         (peek(at) == '_' && isDigitOf(peek(at + 1), base) && at > 0 && text_[at - 1] != '_')) {
    ++at;
  }
  return at;
}

Token Lexer::lexNumber(size_t start) {
  size_t at = start;
  bool is_int = true;
  char marker = peek(start + 1) | 0x20;
  int base = text_[start] != '0' ? 10
             : marker == 'x'     ? 16
             : marker == 'o'     ? 8
             : marker == 'b'     ? 2
                                 : 10;
  if (base != 10) {
    at = digitsEnd(start + 2, base);
    if (at == start + 2) fail(start, at, fmt::format("a number of base {} needs digits", base));
  } else {
    at = digitsEnd(start, 10);
    if (peek(at) == '.') {
      is_int = false;
      at = isDigit(peek(at + 1)) ? digitsEnd(at + 1, 10) : at + 1;
    }
    if ((peek(at) | 0x20) == 'e') {
      size_t digits = at + 1 + (peek(at + 1) == '+' || peek(at + 1) == '-' ? 1 : 0);
      if (isDigit(peek(digits))) {
        is_int = false;
        at = digitsEnd(digits, 10);
      }
    }
    if ((peek(at) | 0x20) == 'j') {
      is_int = false;
      ++at;
    }
  }
  size_t word_end = identifierEnd(at);
  if (word_end > at) {
    fail(start, word_end,
         fmt::format("'{}' is not a number", text_.substr(start, word_end - start)));
  }
  if (is_int && base == 10 && text_[start] == '0' &&
      text_.substr(start, at - start).find_first_not_of("0_") != std::string_view::npos) {
    fail(start, at, "an integer must not begin with 0; octal ones begin with 0o");
  }
  pos_ = at;
  return make(TK_NUMBER, start, at);
}

Token Lexer::lexOperator(size_t start) {
  for (size_t length : {3, 2}) {
    if (length > end_ - start) continue;
    auto found = fixedTokens().operators.find(text_.substr(start, length));
    if (found == fixedTokens().operators.end()) continue;
    pos_ = start + length;
    return make(found->second, start, pos_);
  }
  char c = text_[start];
  if (c == '\0' || kOneCharacterTokens.find(c) == std::string_view::npos) {
    fail(start, start + 1, fmt::format("unexpected character '{}'", printable(c)));
  }
  if (c == '(' || c == '[' || c == '{') {
    brackets_.push_back(start);
  } else if (c == ')' || c == ']' || c == '}') {
    if (brackets_.empty()) {
      if (mode_ == Mode::kProgram) fail(start, start + 1, fmt::format("unmatched '{}'", c));
    } else {
      char opener = text_[brackets_.back()];
      if (closerOf(opener) != c) {
        fail(
            start, start + 1,
            fmt::format("expected '{}' to close '{}' but found '{}'", closerOf(opener), opener, c));
      }
      brackets_.pop_back();
    }
  }
  pos_ = start + 1;
  return make(static_cast<unsigned char>(c), start, pos_);
}

}  // namespace wick
