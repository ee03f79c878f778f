// Whether a program can notice how a tensor lies in memory.
#pragma once

#include "ir/graph.h"

namespace wick {

// Whether all users of the value give the same results, up to the strides of results, if its last
// dimension becomes a part of a longer one: operators that compute from it, views that exist for
// such a tensor too, and users of those views. False when it is returned or stored, and for users
// that are not known to do so.
bool toleratesLongerRows(const Value* v);

// Returns whether all users compute each element of their results from one element of the value.
bool isReadByElement(const Value* v);

// Returns whether the elements are known to fill their memory without gaps or overlap.
bool liesDensely(const Value* v);

}  // namespace wick
