// Values as JSON, for programs that read what the command line tool prints.
#pragma once

#include <string>

#include "core/ivalue.h"

namespace wick::cli {

// null, numbers, true, "text"; lists and tuples are arrays, dicts and objects are objects, with
// keys as texts; a tensor is {"dtype": "float32", "size": [2, 3], "data": [...]} with all elements
// in row-major order. Numbers that JSON lacks are "nan", "inf" and "-inf", a complex one is [re,
// im], everything else its repr(). RuntimeError for values that are nested too deeply, or too long.
std::string jsonText(const IValue& value);
// In quotes, with escapes; bytes that are no UTF-8 become U+FFFD.
std::string jsonQuoted(const std::string& text);
// A line of what nlohmann's JSON holds, with the same for such bytes: a path need not be UTF-8.
template <class Json>
std::string jsonLine(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace wick::cli
