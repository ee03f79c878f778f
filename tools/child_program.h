// Programs of others, where they are installed.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace wick::cli {

// What the program writes to its standard output when it gets `input` at its standard input, which it
// may open as /dev/stdin and read from anywhere. The first word is the program: a path, or a name that
// PATH finds. Nothing when there is none. UsageError, which begins with the option that asked for it,
// when it fails.
std::optional<std::string> outputOf(const char* option, std::vector<std::string> command,
                                    const std::string& input);

}  // namespace wick::cli
