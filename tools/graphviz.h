// Graphviz's program, where it is installed.
#pragma once

#include <string>

namespace wick::cli {

// The picture of a Graphviz text as SVG. UsageError when there is no program dot, or when it fails.
std::string renderSvg(const std::string& dot_text);

}  // namespace wick::cli
