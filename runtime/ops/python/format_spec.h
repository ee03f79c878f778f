// Python's format(value, spec): the mini-language of f-strings and str.format and, in its numbers,
// of the % operator.
#pragma once

#include <string>
#include <string_view>

#include "core/ivalue.h"

namespace wick::ops {

// Throws RuntimeError of class ValueError.
[[noreturn]] void failValue(const std::string& message);

// [[fill]align][sign][#][0][width][grouping][.precision][type], taken apart.
struct FormatSpec {
  std::string fill = " ";  // one character, in UTF-8
  char align = '\0';       // '<', '>', '^', '='; 0: as the type of the value has it
  char sign = '-';
  bool alternate = false;
  char grouping = '\0';  // ',' or '_'
  int64_t width = 0;
  int64_t precision = -1;  // -1: not given
  char type = '\0';

  // RuntimeError of class ValueError for what is not a specification.
  static FormatSpec parse(std::string_view text);
};

// The value as Python's format() writes it. RuntimeError of class ValueError for a specification
// that the value's type does not have, TypeError for types that have none.
std::string formatWith(const IValue& value, const FormatSpec& given);
std::string formatWith(const IValue& value, std::string_view spec);

// The number that a tensor of one element holds. RuntimeError of class TypeError for others.
IValue elementOf(const Tensor& t);

// Number of characters, and the first `count` of them, of text in UTF-8.
int64_t characterCount(std::string_view text);
std::string_view firstCharacters(std::string_view text, int64_t count);

// Python's ascii(): repr() with all that is not ASCII escaped.
std::string asciiRepr(const IValue& value);

}  // namespace wick::ops
