// Which variables an expression can notice.
#pragma once

#include <string>
#include <vector>

#include "frontend/environment.h"
#include "frontend/tree.h"

namespace wick {

// The names of the variables that may be read while `tree` is compiled, each once, in the order in
// which they stand there. A local function reads more than its call shows: what its body mentions
// is among them.
std::vector<std::string> mentionedNames(const TreeRef& tree, const Environment& environment);

}  // namespace wick
