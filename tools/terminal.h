// Colours for whoever reads at a terminal.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace wick::cli {

enum class Paint { Red, Yellow, Dim };

// Whether the stream is a terminal that shows colours. NO_COLOR (no-color.org) says no whatever the
// stream is, CLICOLOR_FORCE says yes, unless it is 0.
bool showsColors(FILE* stream);

// The text in that colour when the stream shows colours, else as it is. Its last newlines stay
// outside.
std::string paint(FILE* stream, Paint how, std::string_view text);

// A message of an error: its first line stands out, and the carets below source lines.
std::string paintError(FILE* stream, std::string_view message);

}  // namespace wick::cli
