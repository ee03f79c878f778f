// Classes under construction: finding their members while other code already refers to them.
#pragma once

#include <string>

#include "ir/function.h"

namespace wick {

// The method of a class or interface; null when there is none.
Function* findMethodOf(const TypePtr& type, const std::string& name);
// Attributes of a class appear when its __init__ is compiled: does so unless it happened or is
// happening.
void ensureInitialized(const ClassType& type);

}  // namespace wick
