#include "core/source_origin.h"

#include <atomic>
#include <exception>

namespace wick {

namespace {
std::atomic<SourceRange (*)(const SourceRange&)> finder{nullptr};

bool isIn(const SourceRange& range, std::string_view begin) {
  return range.valid() && range.source()->name().starts_with(begin);
}

}  // namespace

bool isInEngine(const SourceRange& range) {
  return isIn(range, kGradientSource) || isIn(range, kForwardSource) || isIn(range, kBuiltinSource);
}

bool isInForward(const SourceRange& range) {
  return isIn(range, kForwardSource);
}

void setUserRange(SourceRange (*find)(const SourceRange& range)) {
  finder.store(find, std::memory_order_release);
}

SourceRange userRange(const SourceRange& range) noexcept {
  const auto find = finder.load(std::memory_order_acquire);
  if (!find || !range.valid()) return range;
  try {
    SourceRange found = find(range);
    return found.valid() ? found : range;
  } catch (const std::exception&) {
    // A file whose marks cannot be read is no reason to hide another error.
    return range;
  }
}

}  // namespace wick
