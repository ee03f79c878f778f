// Pictures: Graphviz's program, where it is installed.
#pragma once

#include <string>

namespace wick::cli {

// The picture of a Graphviz text as SVG. UsageError when there is no program dot, or when it fails.
std::string renderSvg(const std::string& dot_text);

// Writes a drawing by the end of the path: a picture (.svg), its Graphviz text (.dot), or else `text`. The path
// "-" is standard output.
void writeDrawing(const std::string& path, const std::string& dot, const std::string& text);

}  // namespace wick::cli
