// The order in which people sort numbered names: x2 before x10.
#pragma once

#include <string_view>

namespace wick {

namespace detail {

inline bool isDigit(char c) {
  return c >= '0' && c <= '9';
}

// Takes the number off the front of `text`, without leading zeros.
inline std::string_view takeNumber(std::string_view& text) {
  size_t zeros = 0;
  while (zeros < text.size() && text[zeros] == '0') ++zeros;
  size_t end = zeros;
  while (end < text.size() && isDigit(text[end])) ++end;
  const std::string_view number = text.substr(zeros, end - zeros);
  text.remove_prefix(end);
  return number;
}

}  // namespace detail

// Runs of digits compare as numbers, all else byte by byte. Names that differ in leading zeros
// alone compare byte by byte as a whole.
struct NaturalLess {
  using is_transparent = void;

  bool operator()(std::string_view a, std::string_view b) const {
    const std::string_view all_a = a, all_b = b;
    while (!a.empty() && !b.empty()) {
      if (detail::isDigit(a[0]) && detail::isDigit(b[0])) {
        const std::string_view x = detail::takeNumber(a), y = detail::takeNumber(b);
        if (x.size() != y.size()) return x.size() < y.size();
        if (x != y) return x < y;
        continue;
      }
      if (a[0] != b[0]) {
        return static_cast<unsigned char>(a[0]) < static_cast<unsigned char>(b[0]);
      }
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
    if (a.empty() != b.empty()) return a.empty();
    return all_a < all_b;
  }
};

}  // namespace wick
