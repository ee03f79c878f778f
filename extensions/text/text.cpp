#include "extensions/text/text.h"

#include <algorithm>

#include "core/budget.h"
#include "core/error.h"

namespace wick::text {

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

void Texts::push(std::string text) {
  texts_.push_back(std::move(text));
  bytes_ += HeldMemory::of(texts_.back());
  if (bytes_ >= (size_t{1} << 20)) checkAllocation(class_name_, bytes_);
}

std::vector<std::string> splitAtSpaces(const char* class_name, const std::string& text) {
  Texts parts(class_name);
  Pace pace;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    if (end > begin) {
      pace.step(16);
      parts.push(text.substr(begin, end - begin));
    }
    begin = end + 1;
  }
  return parts.take();
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
