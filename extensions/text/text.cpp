#include "extensions/text/text.h"

#include <algorithm>

#include "core/budget.h"
#include "core/error.h"

namespace wick::text {

// So much may be made before somebody asks whether it is allowed.
constexpr size_t kLookAt = size_t{1} << 20;

const std::vector<IValue>& stateParts(const char* class_name, const IValue& state, size_t count) {
  WICK_CHECK(state.isTuple(), "the state of {}: expected a tuple, got {}", class_name,
             state.tagName());
  const std::vector<IValue>& parts = state.elements();
  WICK_CHECK(parts.size() == count,
             "Expected deserialized {} to have {} states but found {} states", class_name, count,
             parts.size());
  return parts;
}

void HeldMemory::add(const char* class_name, size_t bytes) {
  checkAllocation(class_name, bytes);
  noteMemory(static_cast<int64_t>(bytes));
  bytes_ += static_cast<int64_t>(bytes);
}

size_t HeldMemory::of(const std::vector<std::string>& texts) {
  size_t bytes = 0;
  for (const std::string& text : texts) bytes += of(text);
  return bytes;
}

std::vector<std::string> splitAtSpaces(const char* class_name, const std::string& text) {
  std::vector<std::string> parts;
  Pace pace;
  size_t bytes = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    if (end > begin) {
      pace.step(16);
      parts.push_back(text.substr(begin, end - begin));
      if ((bytes += HeldMemory::of(parts.back())) >= kLookAt) checkAllocation(class_name, bytes);
    }
    begin = end + 1;
  }
  return parts;
}

namespace {

// Once, before main(), as all operators are added.
[[maybe_unused]] const bool defined = [] {
  Extension extension("torchtext");
  defineVocab(extension);
  defineVectors(extension);
  defineRegex(extension);
  defineGpt2Encoder(extension);
  defineClipEncoder(extension);
  defineBertEncoder(extension);
  extension.add();
  return true;
}();

}  // namespace

}  // namespace wick::text
