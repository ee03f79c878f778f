// Plans as pictures: text for Graphviz.
#pragma once

#include <string>

#include "streams/schedule/plan.h"
#include "streams/schedule/run.h"

namespace wick::streams {

// A box for each stage with its filters, copies and measured time, the slowest darkest; with a
// report also how much of its time a stage computed and waited. Edges tell what is handed on.
std::string planDot(const StreamGraph& graph, const Plan& plan, const RunReport* report = nullptr);

}  // namespace wick::streams
