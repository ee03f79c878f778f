// Files of users, in JSON.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/error_types.h"

namespace wick::streams {

// UsageError, which begins with what the text is, for what is not JSON. The parser recurses, so text that
// is too deep is refused before it is read.
template <class Json>
Json parsedJson(std::string_view text, std::string_view what) {
  constexpr int kMaxDepth = 100;
  try {
    return Json::parse(text, [&](int depth, typename Json::parse_event_t, Json&) {
      if (depth <= kMaxDepth) return true;
      throw UsageError(fmt::format("{}: lists or objects nest too deeply", what));
    });
  } catch (const typename Json::exception& e) {
    throw UsageError(fmt::format("{}: not JSON: {}", what, e.what()));
  }
}

// For messages: the beginning, in one line.
template <class Json>
std::string shownJson(const Json& json) {
  constexpr size_t kMaxShown = 60;
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() <= kMaxShown) return text;
  size_t end = kMaxShown;
  // Between two characters of UTF-8.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end);
}

}  // namespace wick::streams
