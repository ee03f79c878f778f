// Constants as printed source writes them. Private to the Python printer.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/ivalue.h"

namespace wick {

// The constants that have no literal: tensors, objects, text that is not ASCII.
class ConstantTable {
 public:
  // Its index; equal constants share one.
  size_t add(const IValue& value);
  const std::vector<IValue>& values() const { return values_; }

 private:
  bool same(const IValue& a, const IValue& b) const;

  std::vector<IValue> values_;
  std::unordered_multimap<size_t, size_t> index_;  // by a hash of their identity
};

using TypeNamer = std::function<std::string(const Type&)>;

// "1", "2.5", "\"text\"", "CONSTANTS.c0", "annotate(List[int], [])".
std::string constantText(const IValue& value, ConstantTable& table, const TypeNamer& name);

// Whether a list literal of elements of this type is of the right type without an annotation.
bool inferredFromElements(const Type& element);

// A string literal in double quotes.
std::string quotedText(std::string_view text);

}  // namespace wick
