#include "core/utf8.h"

namespace wick {

std::optional<uint32_t> decodeUtf8(std::string_view s, size_t& i) {
  auto byte = [&](size_t k) { return static_cast<unsigned char>(s[k]); };
  unsigned char lead = byte(i);
  size_t extra = lead < 0x80 ? 0 : lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
  if ((lead >= 0x80 && lead < 0xc2) || lead > 0xf4 || i + extra >= s.size()) {
    ++i;
    return std::nullopt;
  }
  uint32_t code = extra == 0 ? lead : lead & (0x3f >> extra);
  for (size_t k = 1; k <= extra; ++k) {
    if ((byte(i + k) & 0xc0) != 0x80) {
      ++i;
      return std::nullopt;
    }
    code = code << 6 | (byte(i + k) & 0x3f);
  }
  static constexpr uint32_t kSmallest[] = {0, 0x80, 0x800, 0x10000};
  if (code < kSmallest[extra] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
    ++i;
    return std::nullopt;
  }
  i += extra + 1;
  return code;
}

void appendUtf8(std::string& out, uint32_t code) {
  auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((code >> shift) & 0x3f)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | code >> 6);
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | code >> 12);
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xf0 | code >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

}  // namespace wick
