// Where calls that are recorded stand in the program.
#pragma once

#include "core/source_range.h"

namespace wick::lazy {

// Of the call that is under way: a place in a script, or what setPlace() said last when no script has
// been called since. Invalid where neither is known, and while nobody wants places.
SourceRange placeOfCall();

}  // namespace wick::lazy
