// What the operators on strings and numbers share. Strings are bytes; letters, digits and blanks
// are those of ASCII.
#pragma once

#include <string>
#include <string_view>

namespace wick::ops {

inline bool isDigit(char c) {
  return c >= '0' && c <= '9';
}
inline bool isLower(char c) {
  return c >= 'a' && c <= 'z';
}
inline bool isUpper(char c) {
  return c >= 'A' && c <= 'Z';
}
inline bool isAlpha(char c) {
  return isLower(c) || isUpper(c);
}
// Python's ASCII whitespace.
inline bool isSpace(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r') || (c >= '\x1c' && c <= '\x1f');
}
inline char toLower(char c) {
  return isUpper(c) ? static_cast<char>(c + 32) : c;
}
inline char toUpper(char c) {
  return isLower(c) ? static_cast<char>(c - 32) : c;
}

// As std::string_view's find() and rfind(), but in linear time whatever the texts are.
size_t findText(std::string_view text, std::string_view part, size_t from = 0);
size_t rfindText(std::string_view text, std::string_view part);

inline std::string_view stripSpace(std::string_view s) {
  while (!s.empty() && isSpace(s.front())) s.remove_prefix(1);
  while (!s.empty() && isSpace(s.back())) s.remove_suffix(1);
  return s;
}

}  // namespace wick::ops
