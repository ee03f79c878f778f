// Characters of text in UTF-8.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace wick {

// The code point at s[i]; i moves past it. Bytes that are not UTF-8 give nothing and are passed one
// at a time. i must be less than s.size().
std::optional<uint32_t> decodeUtf8(std::string_view s, size_t& i);

// `code` must be at most 0x10ffff.
void appendUtf8(std::string& out, uint32_t code);

}  // namespace wick
