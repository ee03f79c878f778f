#include "runtime/ops/values/text.h"

#include <algorithm>
#include <cstring>

#include "core/memory_limit.h"
#include "core/text_limit.h"

namespace wick::ops {

size_t findText(std::string_view text, std::string_view part, size_t from) {
  if (from > text.size()) return std::string_view::npos;
  const void* found = memmem(text.data() + from, text.size() - from, part.data(), part.size());
  if (!found) return std::string_view::npos;
  return static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

size_t rfindText(std::string_view text, std::string_view part) {
  // The plain search compares up to the product of both lengths.
  constexpr size_t kShort = 16;
  if (part.size() <= kShort || part.size() > text.size()) return text.rfind(part);
  const std::string reversed(text.rbegin(), text.rend());
  const std::string wanted(part.rbegin(), part.rend());
  const size_t at = findText(reversed, wanted);
  return at == std::string_view::npos ? at : text.size() - at - part.size();
}

}  // namespace wick::ops
