// String literals: escapes, adjacent strings, f-strings.
#include "core/error.h"
#include "frontend/parser_impl.h"

namespace wick::detail {

namespace {

// As in Python: a replacement field may stand in the format specification of another one, not
// deeper.
constexpr int kMaxFormatLevel = 2;

void appendUtf8(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | code >> 6);
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | code >> 12);
    out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | code >> 18);
    out += static_cast<char>(0x80 | (code >> 12 & 0x3f));
    out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  }
}

int hexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The character that a one-letter escape stands for, or -1.
int simpleEscape(char c) {
  switch (c) {
    case '\\':
    case '\'':
    case '"':
      return c;
    case 'a':
      return '\a';
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'v':
      return '\v';
    default:
      return -1;
  }
}

}  // namespace

// What was read of a run of adjacent strings so far.
struct ParserImpl::StringParts {
  std::vector<Expr> parts;
  std::string text;  // decoded text after the last part
  SourceRange text_range;
  bool is_format = false;

  void cover(const SourceRange& range) { text_range = SourceRange::cover(text_range, range); }
  void flush() {
    if (!text.empty()) parts.push_back(StringLiteral::create(text_range, std::move(text)));
    text.clear();
    text_range = SourceRange();
  }
  Expr finish(const SourceRange& range) {
    if (!is_format) return StringLiteral::create(range, std::move(text));
    flush();
    return JoinedStr::create(range, List<Expr>::create(range, parts));
  }
};

Expr ParserImpl::strings() {
  SourceRange start = cur().range;
  StringParts parts;
  while (cur().kind == TK_STRINGLITERAL) stringToken(next(), parts);
  return parts.finish(rangeFrom(start));
}

void ParserImpl::stringToken(const Token& token, StringParts& parts) {
  std::string_view text = token.text();
  size_t quote = text.find_first_of("'\"");
  std::string prefix;
  for (char c : text.substr(0, quote)) prefix += static_cast<char>(c | 0x20);
  if (prefix.find('b') != std::string::npos) {
    throwCompileError(token.range, "bytes literals are not supported: expected a string");
  }
  bool format = prefix == "f" || prefix == "fr" || prefix == "rf";
  bool raw = prefix == "r" || prefix == "fr" || prefix == "rf";
  if (!format && !raw && !prefix.empty() && prefix != "u") {
    throwCompileError(token.range, "'{}' is not a prefix of a string", text.substr(0, quote));
  }
  size_t marks =
      text.size() - quote >= 6 && text[quote + 1] == text[quote] && text[quote + 2] == text[quote]
          ? 3
          : 1;
  size_t start = token.range.start() + quote + marks;
  size_t end = token.range.end() - marks;
  if (format) {
    parts.is_format = true;
    formatText(start, end, raw, 1, parts);
  } else {
    plainText(start, end, raw, parts);
  }
}

void ParserImpl::plainText(size_t start, size_t end, bool raw, StringParts& parts) {
  std::string_view all = source_->text();
  parts.cover(rangeOf(start, end));
  for (size_t at = start; at < end;) {
    if (all[at] == '\\' && !raw) {
      at = escape(at, end, parts.text);
    } else if (all[at] == '\r' && at + 1 < end && all[at + 1] == '\n') {
      ++at;  // lines end as in Python, whatever the file's convention
    } else {
      parts.text += all[at++];
    }
  }
}

// Decodes the escape whose backslash is at `at`; returns the offset after it.
size_t ParserImpl::escape(size_t at, size_t end, std::string& out) {
  std::string_view all = source_->text();
  size_t start = at++;
  if (at >= end) throwCompileError(rangeOf(start, end), "a backslash without a character after it");
  char c = all[at++];
  if (c == '\r' && at < end && all[at] == '\n') c = all[at++];
  if (c == '\n') return at;
  if (int simple = simpleEscape(c); simple >= 0) {
    out += static_cast<char>(simple);
    return at;
  }
  if (c >= '0' && c <= '7') {
    // A byte, not a code point as in Python: this is how PyTorch writes UTF-8 into archives.
    int value = c - '0';
    for (int i = 0; i < 2 && at < end && all[at] >= '0' && all[at] <= '7'; ++i) {
      value = value * 8 + (all[at++] - '0');
    }
    if (value > 0xff) {
      throwCompileError(rangeOf(start, at), "the octal escape is larger than \\377");
    }
    out += static_cast<char>(value);
    return at;
  }
  if (c == 'N') {
    throwCompileError(rangeOf(start, at), "escapes with the name of a character are not supported");
  }
  size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
  if (digits == 0) {
    // Python keeps the backslash of an escape that it does not know.
    out += '\\';
    out += c;
    return at;
  }
  uint32_t code = 0;
  for (size_t i = 0; i < digits; ++i, ++at) {
    int digit = at < end ? hexDigit(all[at]) : -1;
    if (digit < 0) {
      throwCompileError(rangeOf(start, at), "expected {} hexadecimal digits after '\\{}'", digits,
                        c);
    }
    code = code << 4 | static_cast<uint32_t>(digit);
  }
  if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
    throwCompileError(rangeOf(start, at), "the escape names no Unicode character");
  }
  appendUtf8(out, code);
  return at;
}

void ParserImpl::formatText(size_t start, size_t end, bool raw, int level, StringParts& parts) {
  std::string_view all = source_->text();
  auto doubled = [&](size_t at) { return at + 1 < end && all[at + 1] == all[at]; };
  for (size_t at = start; at < end;) {
    char c = all[at];
    if (c == '{' && !doubled(at)) {
      at = replacementField(at + 1, end, raw, level, parts);
      continue;
    }
    size_t text_start = at;
    if (c == '}' && !doubled(at)) {
      throwCompileError(rangeOf(at, at + 1),
                        "f-string: a single '}}' is not allowed; write '}}}}'");
    }
    if (c == '{' || c == '}') {
      parts.text += c;
      at += 2;
    } else if (c == '\\' && !raw) {
      at = escape(at, end, parts.text);
    } else {
      if (c != '\r' || at + 1 >= end || all[at + 1] != '\n') parts.text += c;
      ++at;
    }
    if (parts.text_range.valid()) {
      parts.text_range = rangeOf(parts.text_range.start(), at);
    } else {
      parts.text_range = rangeOf(text_start, at);
    }
  }
}

// Past the expression of a replacement field: the offset of the '=', '!', ':' or '}' that ends it.
size_t ParserImpl::skipFieldExpr(size_t start, size_t end) {
  std::string_view all = source_->text();
  size_t nested = 0;
  char quote = '\0';
  for (size_t at = start; at < end; ++at) {
    char c = all[at];
    char after = at + 1 < end ? all[at + 1] : '\0';
    if (c == '\\' || c == '#') {
      throwCompileError(rangeOf(at, at + 1), "f-string: an expression must not contain '{}'", c);
    }
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '(' || c == '[' || c == '{') {
      ++nested;
    } else if (nested > 0) {
      if (c == ')' || c == ']' || c == '}') --nested;
    } else if (c == '}' || c == ':') {
      return at;
    } else if (after == '=' && (c == '!' || c == '=' || c == '<' || c == '>')) {
      ++at;  // a comparison
    } else if (c == '!' || c == '=') {
      return at;
    }
  }
  throwCompileError(rangeOf(start, end), "f-string: expected '}}' after the expression");
}

size_t ParserImpl::skipFormatSpec(size_t start, size_t end) {
  std::string_view all = source_->text();
  size_t nested = 0;
  for (size_t at = start; at < end; ++at) {
    if (all[at] == '{') ++nested;
    if (all[at] == '}' && nested-- == 0) return at;
  }
  throwCompileError(rangeOf(start, end), "f-string: expected '}}' after the format specification");
}

size_t ParserImpl::replacementField(size_t start, size_t end, bool raw, int level,
                                    StringParts& parts) {
  std::string_view all = source_->text();
  if (level > kMaxFormatLevel) {
    throwCompileError(rangeOf(start - 1, end), "f-string: expressions are nested too deep");
  }
  size_t at = skipFieldExpr(start, end);
  std::string_view text = all.substr(start, at - start);
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    throwCompileError(rangeOf(start - 1, at + 1), "f-string: expected an expression inside '{{}}'");
  }
  auto value = [&] {
    Excursion excursion(*this, start, at);
    Expr result = exprOrTuple();
    expectEnd("the expression");
    return result;
  }();
  bool debug = all[at] == '=';
  if (debug) {
    ++at;
    while (at < end && (all[at] == ' ' || all[at] == '\t')) ++at;
    parts.text += all.substr(start, at - start);
    parts.cover(rangeOf(start, at));
  }
  SourceRange here = rangeOf(at, at);
  Maybe<StringLiteral> conversion = Maybe<StringLiteral>::create(here);
  auto convert = [&](const SourceRange& range, std::string letter) {
    conversion =
        Maybe<StringLiteral>::create(range, StringLiteral::create(range, std::move(letter)));
  };
  if (at < end && all[at] == '!') {
    char letter = at + 1 < end ? all[at + 1] : '\0';
    if (letter != 's' && letter != 'r' && letter != 'a') {
      throwCompileError(rangeOf(at, at + 1), "f-string: expected 's', 'r' or 'a' after '!'");
    }
    convert(rangeOf(at, at + 2), std::string(1, letter));
    at += 2;
  }
  Maybe<Expr> spec = Maybe<Expr>::create(here);
  if (at < end && all[at] == ':') {
    size_t spec_end = skipFormatSpec(at + 1, end);
    StringParts spec_parts;
    formatText(at + 1, spec_end, raw, level + 1, spec_parts);
    SourceRange range = rangeOf(at + 1, spec_end);
    spec_parts.is_format = !spec_parts.parts.empty();
    spec = Maybe<Expr>::create(range, spec_parts.finish(range));
    at = spec_end;
  }
  if (at >= end || all[at] != '}') {
    throwCompileError(rangeOf(start - 1, at), "f-string: expected '}}' after the expression");
  }
  if (debug && !conversion.present() && !spec.present()) convert(here, "r");
  parts.flush();
  SourceRange range = rangeOf(start - 1, at + 1);
  parts.parts.push_back(FormattedValue::create(range, value, conversion, spec));
  return at + 1;
}

}  // namespace wick::detail
