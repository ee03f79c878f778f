// Identifiers of printed source. Private to the Python printer.
#pragma once

#include <string>
#include <string_view>

#include "core/keyed_hash.h"

namespace wick {

bool isValidIdentifier(std::string_view name);
// Invalid characters become '_', and so does a digit at the beginning get one before it.
std::string makeValidIdentifier(std::string_view candidate);

// Names that are taken in the function that is being printed.
class NameGenerator {
 public:
  // `candidate`, or with a number appended when it is taken or reserved.
  std::string unique(const std::string& candidate);
  // A new function: every name is free again. Numbers go on counting, as PyTorch's do.
  void clear() { used_.clear(); }

 private:
  KeyedSet<std::string> used_;
  KeyedMap<std::string, size_t> next_;
};

}  // namespace wick
