#include "core/value_conversions.h"

#include "core/error.h"

namespace wick::detail {

void throwExpected(const std::string& expected, const IValue& found) {
  throwRuntimeError("expected {}, got {}", expected, found.tagName());
}

void throwExpectedLength(size_t expected, const IValue& found) {
  throwRuntimeError("expected a {} of {}, got one of {}", found.tagName(), expected, found.size());
}

void throwWithin(const IValue& key, const RuntimeError& error) {
  // The positions in nested containers stand in one row: "[2]['scores']: expected …".
  const std::string place = fmt::format("[{}]", key.shortRepr(100));
  const std::string& inner = error.brief();
  throw RuntimeError(place + (inner.starts_with('[') ? inner : ": " + inner), error.className());
}

void throwOutOfRange(int64_t value, int64_t least, uint64_t greatest) {
  throwRuntimeError("expected an int from {} to {}, got {}", least, greatest, value);
}

}  // namespace wick::detail
