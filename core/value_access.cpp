// Elements of values for C++ programs; scripts reach them by operators.
#include "core/error.h"
#include "core/ivalue.h"

namespace wick {
namespace {

// The element that an index means; nullopt when there is none.
std::optional<size_t> placeOf(const std::vector<IValue>& elements, int64_t index) {
  const auto size = static_cast<int64_t>(elements.size());
  if (index < -size || index >= size) return std::nullopt;
  return static_cast<size_t>(index < 0 ? index + size : index);
}

std::optional<size_t> fieldOf(const TupleObject& tuple, const std::string& name) {
  return tuple.named ? tuple.named->fieldIndex(name) : std::nullopt;
}

[[noreturn]] void throwNoElements(const IValue& value, const IValue& key) {
  throwRuntimeError("expected {}, got {}",
                    key.isString() ? "a dict, named tuple or object" : "a list, tuple or dict",
                    value.tagName());
}

}  // namespace

void IValue::throwTooLarge(uint64_t v) {
  throwRuntimeError("expected an int of 64 bits with sign, got {}", v);
}

size_t IValue::size() const {
  if (isDict()) return toDict().size();
  if (isList() || isTuple()) return elements().size();
  throwRuntimeError("expected a list, tuple or dict, got {}", tagName());
}

IValue IValue::at(const IValue& key) const {
  if (isDict()) {
    if (const IValue* found = toDict().find(key)) return *found;
    throw RuntimeError(key.shortRepr(), "KeyError");
  }
  if (key.isString() && isTuple()) {
    if (auto field = fieldOf(toTuple(), key.toString())) return elements()[*field];
    if (!toTuple().named) throwRuntimeError("expected a named tuple, got a tuple without names");
    throwRuntimeError("{} has no field '{}'", toTuple().named->name(), key.toString());
  }
  if (key.isString() && isObject()) return toObject().attr(key.toString());
  if (key.isString() || (!isList() && !isTuple())) throwNoElements(*this, key);
  if (auto place = placeOf(elements(), key.toInt())) return elements()[*place];
  throw RuntimeError(
      fmt::format("{} index out of range: {} of {}", tagName(), key.toInt(), elements().size()),
      "IndexError");
}

bool IValue::contains(const IValue& key) const {
  if (isDict()) return toDict().find(key) != nullptr;
  if (key.isString() && isTuple()) return fieldOf(toTuple(), key.toString()).has_value();
  if (key.isString() && isObject()) {
    return toObject().type()->findAttribute(key.toString()).has_value();
  }
  if (key.isString() || (!isList() && !isTuple())) throwNoElements(*this, key);
  return placeOf(elements(), key.toInt()).has_value();
}

std::vector<std::pair<IValue, IValue>> IValue::items() const {
  return toDict().items();
}

IValue::Iterator IValue::begin() const {
  if (isDict()) return Iterator(IValue(makeTuple(toDict().keys())));
  if (!isList() && !isTuple()) {
    throwRuntimeError("expected a list, tuple or dict to iterate over, got {}", tagName());
  }
  return Iterator(*this);
}

}  // namespace wick
