#include "tools/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace wick::cli {
namespace {

bool isSet(const char* variable) {
  const char* value = std::getenv(variable);
  return value && *value;
}

std::string_view codeOf(Paint how) {
  switch (how) {
    case Paint::Red:
      return "\x1b[1;31m";
    case Paint::Yellow:
      return "\x1b[33m";
    case Paint::Dim:
      return "\x1b[2m";
  }
  return "";
}

// "    ~~~~ <--- HERE".
bool isCaretLine(std::string_view line) {
  const size_t first = line.find_first_not_of(' ');
  return first != std::string_view::npos && (line[first] == '~' || line[first] == '^');
}

// How many bytes the character of UTF-8 has that the text begins with; 0 when it begins with none.
size_t characterLength(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t length = lead < 0x80                   ? 1
                        : lead >= 0xc2 && lead < 0xe0 ? 2
                        : lead >= 0xe0 && lead < 0xf0 ? 3
                        : lead >= 0xf0 && lead < 0xf5 ? 4
                                                      : 0;
  if (length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 0;
  }
  return length;
}

// U+0000 to U+001f and U+007f to U+009f.
bool isControl(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7f;
  return first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;
}

}  // namespace

std::string harmless(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = characterLength(text);
    const std::string_view character = text.substr(0, std::max<size_t>(length, 1));
    const bool plain = text[0] == '\n' || text[0] == '\t';
    if (plain || (length > 0 && !isControl(character))) {
      out += character;
    } else {
      for (const char byte : character) {
        out += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
      }
    }
    text.remove_prefix(character.size());
  }
  return out;
}

std::string shownOn(FILE* stream, std::string_view text) {
  return isatty(fileno(stream)) == 1 ? harmless(text) : std::string(text);
}

bool showsColors(FILE* stream) {
  if (isSet("NO_COLOR")) return false;
  if (isSet("CLICOLOR_FORCE")) return std::string_view(std::getenv("CLICOLOR_FORCE")) != "0";
  const char* term = std::getenv("TERM");
  if (!term || std::string_view(term) == "dumb") return false;
  return isatty(fileno(stream)) == 1;
}

std::string paint(FILE* stream, Paint how, std::string_view text) {
  if (!showsColors(stream) || text.empty()) return std::string(text);
  size_t end = text.size();
  while (end > 0 && text[end - 1] == '\n') --end;
  std::string out(codeOf(how));
  out += text.substr(0, end);
  out += "\x1b[0m";
  out += text.substr(end);
  return out;
}

bool ProgressLine::hasTerminal() {
  return isatty(STDERR_FILENO) != 0;
}

void ProgressLine::show(const std::function<std::string()>& text) {
  const auto now = std::chrono::steady_clock::now();
  if (!shown_ || now < next_) return;
  next_ = now + std::chrono::milliseconds(100);
  std::fputs(("\r\x1b[K" + text()).c_str(), stderr);
  std::fflush(stderr);
  there_ = true;
}

void ProgressLine::clear() {
  if (!there_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  there_ = false;
}

std::string paintError(FILE* stream, std::string_view message) {
  std::string shown = shownOn(stream, message);
  if (!showsColors(stream)) return shown;
  std::string out;
  for (size_t begin = 0; begin < shown.size();) {
    const size_t end = std::min(shown.find('\n', begin), shown.size());
    const std::string_view line = std::string_view(shown).substr(begin, end - begin);
    if (begin == 0) {
      out += paint(stream, Paint::Red, line);
    } else if (isCaretLine(line)) {
      out += paint(stream, Paint::Yellow, line);
    } else {
      out += line;
    }
    if (end < shown.size()) out += '\n';
    begin = end + 1;
  }
  return out;
}

}  // namespace wick::cli
