// Stream graphs and plans as pictures: text for Graphviz.
#pragma once

#include <string>

#include "streams/stream_graph.h"

namespace wick::streams {

// Filters are boxes with their kind, options and state, stateful ones with a double line; pipelines
// within others, split-joins and feedback loops are frames; splits and joins are small triangles.
// Edges tell the types of values and rates other than one.
std::string streamDot(const StreamGraph& graph);

}  // namespace wick::streams
