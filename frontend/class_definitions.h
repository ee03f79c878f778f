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
// For members that are not found: throws the error of a line in the class's body that could not be
// read when it may have defined this one.
void checkUnreadable(const ClassType& type, const std::string& member);
// Whether a method is none, but stands for such a line.
bool isUnreadable(const Function& method);

}  // namespace wick
