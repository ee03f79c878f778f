#include "tools/terminal.h"

#include <unistd.h>

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

}  // namespace

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

std::string paintError(FILE* stream, std::string_view message) {
  if (!showsColors(stream)) return std::string(message);
  std::string out;
  for (size_t begin = 0; begin < message.size();) {
    const size_t end = std::min(message.find('\n', begin), message.size());
    const std::string_view line = message.substr(begin, end - begin);
    if (begin == 0) {
      out += paint(stream, Paint::Red, line);
    } else if (isCaretLine(line)) {
      out += paint(stream, Paint::Yellow, line);
    } else {
      out += line;
    }
    if (end < message.size()) out += '\n';
    begin = end + 1;
  }
  return out;
}

}  // namespace wick::cli
