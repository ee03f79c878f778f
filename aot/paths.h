// Conditions on elements of tensors: the ways that a program can take, found by calling it again with
// other answers, and put together as branches.
#pragma once

#include <functional>

#include "aot/recording.h"
#include "core/ivalue.h"

namespace wick::aot {

// `call` makes arguments and calls the function, on the recording that it is given a fresh start of. Where it
// asks for an element of a boolean tensor it is called again with the other answer; steps before the
// first difference are one. Afterwards the recording holds all steps, and the result's tensors and
// numbers are its outputs, under `name`.
// NotAhead when there are too many ways, or results of different kinds, and what the call throws.
void recordPaths(Recording& recording, const std::string& name,
                 const std::function<IValue()>& call);

}  // namespace wick::aot
