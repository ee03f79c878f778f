// What a caller of a program sees, as text, for comparing runs.
#pragma once

#include <string>
#include <vector>

#include "core/ivalue.h"

namespace wick {

// Describes values by content, to the last bit, and by identity: objects and storages are numbered
// in the order in which they are met, so that sharing shows.
std::string snapshot(const std::vector<IValue>& values);

// Writes all that the caller got, as a caller may.
void spoil(const IValue& v);

}  // namespace wick
