// Operators whose meaning changed: archives of older versions get the meaning that they were
// written for.
#pragma once

#include <cstdint>

#include "core/symbol.h"
#include "frontend/sugared_value.h"

namespace wick {

// What calls of `symbol` stand for in an archive of this version; null when the operator itself has
// that meaning.
SugaredValuePtr upgradedOperator(Symbol symbol, int64_t version);

}  // namespace wick
