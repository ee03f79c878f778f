// The kernel of out= forms that a table writes out, because they have several results or names of
// their own.
#pragma once

#include "ir/operator.h"

namespace wick::ops {

// Calls the overload without the arguments at the end that are written, and writes its results to
// them. Where that overload takes options of its own behind the others, it makes tensors: its dtype
// is that of the first output.
void outForm(CallFrame& frame);

}  // namespace wick::ops
