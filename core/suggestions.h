// "did you mean": names close to one that was not found.
#pragma once

#include <set>
#include <string>

namespace wick {

// "; did you mean 'x'?" with the nearest of `candidates`, or "" when none is near.
std::string didYouMean(const std::string& name, const std::set<std::string>& candidates);

}  // namespace wick
